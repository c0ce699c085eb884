"""`minutebook completion`: the script by which a shell completes commands and options."""

import os
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


def know_shells() -> None:
    """Let the command answer a shell that asks for completions, if this call comes from one."""
    if VARIABLE in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
