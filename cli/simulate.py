"""`minutebook simulate`: show what would be sent."""

from pathlib import Path
from typing import Annotated

import typer

from cli.arguments import here
from cli.render import show
from services.simulation import SimulationRequest, simulation


def simulate(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(help="Files of actions, as for `action add`.")],
    *,
    since: Annotated[str | None, typer.Option("--from", help="Start (default: now).")] = None,
    until: Annotated[str | None, typer.Option("--to", help="End (default: a week later).")] = None,
    down: Annotated[
        list[str] | None,
        typer.Option(help="FROM/TO: no ticks in [from, to); may be repeated."),
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option(
            help="Zone of instants and rules without one (default: of the small app, or UTC)."
        ),
    ] = None,
    small_app: Annotated[
        Path | None,
        typer.Option(help="File of the small app, whose zone and calendars apply."),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=0, help="How many lines of the timeline to show.")
    ] = 100,
) -> None:
    """Show what would be sent in [from, to). Uses no database."""
    asked = SimulationRequest(files, since, until, down or (), zone, limit, small_app)
    show(context, simulation(here(context), asked))
