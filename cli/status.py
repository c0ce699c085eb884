"""`minutebook status` and `doctor`: state and faults."""

from typing import Annotated

import typer

from cli.arguments import backend, existing, existing_here
from cli.render import show
from services import status as states


def status(
    context: typer.Context,
    check: Annotated[
        states.Part | None,
        typer.Option(
            help="Print nothing; exit 1 unless this host's part is alive, or nothing is broken."
        ),
    ] = None,
) -> None:
    """Show the daemon's last tick, workers, runs of the last day, and quarantined actions."""
    if check is not None:
        raise typer.Exit(int(not states.is_alive(existing_here(context), check)))
    show(context, existing(context).call(states.status))


def doctor(context: typer.Context) -> None:
    """Check database, broker, clocks, daemon, workers, mail and settings; change nothing.

    Exits with 1 if there is a fault.
    """
    from services.doctor import environment

    show(context, backend(context).call(environment.examine))
