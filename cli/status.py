"""`minutehand status` and `minutehand doctor`: how the installation stands."""

from typing import Annotated

import typer

from cli.arguments import existing, installation
from cli.render import show
from views import status as standing
from views.doctor import environment


def status(
    context: typer.Context,
    check: Annotated[
        standing.Part | None,
        typer.Option(help="Print nothing; exit 1 unless this host's daemon or worker is alive."),
    ] = None,
) -> None:
    """Show the daemon's last tick, workers, operations of the last day, and quarantined actions."""
    opened = existing(context)
    if check is not None:
        raise typer.Exit(standing.is_alive(opened, check).exit_code)
    show(context, standing.status(opened))


def doctor(context: typer.Context) -> None:
    """Check database, broker, clocks, daemon, workers, mail and settings; change nothing.

    Exit 1 when something is at fault.
    """
    show(context, environment.examine(installation(context)))
