"""`minutebook status` and `doctor`: state and faults; `pause` and `resume`: the quiet period."""

from typing import Annotated

import typer

from cli.arguments import door, existing, existing_here
from cli.render import show
from models.errors import Refused
from views import status as states
from views.status import quiet

All = Annotated[bool, typer.Option("--all", help="The whole installation; required.")]


def status(
    context: typer.Context,
    check: Annotated[
        states.Part | None,
        typer.Option(
            help="Print nothing; exit 1 unless this host's part is alive, or nothing is broken."
        ),
    ] = None,
) -> None:
    """Show the daemon's last tick, workers, operations of the last day, and quarantined actions."""
    if check is not None:
        raise typer.Exit(int(not states.is_alive(existing_here(context), check)))
    show(context, existing(context).ask(states.status))


def doctor(context: typer.Context) -> None:
    """Check database, broker, clocks, daemon, workers, mail and settings; change nothing.

    Exits with 1 if there is a fault.
    """
    from views.doctor import environment

    show(context, door(context).ask(environment.examine))


def pause(
    context: typer.Context,
    until: Annotated[str, typer.Option(help="End: an instant, or a duration such as PT30M.")],
    all_: All = False,
) -> None:
    """Begin a quiet period, or move its end: record what is due, and send it afterwards.

    What the broker already has may still start; running operations go on.
    """
    _check_all(all_, "pause")
    show(context, existing(context).ask(quiet.pause, until))


def resume(context: typer.Context, all_: All = False) -> None:
    """End the quiet period; the next tick sends what waited."""
    _check_all(all_, "resume")
    show(context, existing(context).ask(quiet.resume))


def _check_all(is_all: bool, verb: str) -> None:
    if not is_all:
        raise Refused(f"add --all for the whole installation, or use `minutebook action {verb}`")
