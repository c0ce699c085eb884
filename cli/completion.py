"""`minutebook completion`: the script by which a shell completes commands and options."""

import os
from contextlib import suppress
from enum import StrEnum
from typing import Annotated

import typer

from cli.render import print_line

VARIABLE = "_MINUTEBOOK_COMPLETE"


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="bash, zsh or fish.")],
) -> None:
    """Print the completion script of a shell."""
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name="minutebook", complete_var=VARIABLE, shell=shell.value)
    for line in script.split("\n"):
        print_line(line)


# The most names that a shell is offered.
MOST_NAMES = 200


def action_names(context: typer.Context, incomplete: str) -> list[str]:
    """Return the actions of the installation here whose names begin so; none if it is away."""
    from cli.arguments import Invocation
    from views.actions.search import names_like
    from views.installation import existing

    given = context.find_root().params
    if given.get("url") or os.environ.get("SCHED_URL"):
        return []
    app = given.get("app")
    with suppress(Exception):  # a shell would show the error amid what is typed
        here = Invocation(given.get("home"), app or "default", is_bound=app is not None)
        return names_like(existing(here), incomplete, MOST_NAMES)
    return []


def know_shells() -> None:
    """Let the command answer a shell that asks for completions, if this call comes from one."""
    if VARIABLE in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
