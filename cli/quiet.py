"""`minutehand pause --all` and `minutehand resume --all`: the quiet period of an installation."""

from typing import Annotated

import typer

from cli.arguments import existing
from cli.render import show
from models.errors import Refused
from views import quiet

All = Annotated[bool, typer.Option("--all", help="The whole installation; required.")]


def pause(
    context: typer.Context,
    until: Annotated[str, typer.Option(help="End: an instant, or a duration such as PT30M.")],
    all_: All = False,
) -> None:
    """Begin a quiet period, or move its end: record what is due, and send it afterwards.

    What the broker already has may still start; running operations go on.
    """
    _check(all_, "pause")
    show(context, existing(context).ask(quiet.pause, until))


def resume(context: typer.Context, all_: All = False) -> None:
    """End the quiet period; the next tick sends what waited."""
    _check(all_, "resume")
    show(context, existing(context).ask(quiet.resume))


def _check(is_all: bool, verb: str) -> None:
    if not is_all:
        raise Refused(f"add --all for the whole installation, or use `minutehand action {verb}`")
