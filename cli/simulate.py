"""`minutehand simulate`: what would be sent, and whether that is what is expected."""

from pathlib import Path
from typing import Annotated

import typer

from cli.arguments import installation
from cli.render import show
from views.simulation import Asked, simulation


def simulate(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(help="Files as `action add` takes them.")],
    *,
    since: Annotated[str | None, typer.Option("--from", help="Begin (default: now).")] = None,
    until: Annotated[str | None, typer.Option("--to", help="End (default: a week on).")] = None,
    down: Annotated[
        list[str] | None,
        typer.Option(help="FROM/TO: the daemon does not tick in [from, to); again for more."),
    ] = None,
    zone: Annotated[str, typer.Option(help="Zone of instants and rules that name none.")] = "UTC",
    limit: Annotated[int, typer.Option(min=0, help="Lines of the timeline, at most.")] = 100,
    check: Annotated[
        bool, typer.Option("--check", help="Refuse when no expectations stand beside the files.")
    ] = False,
) -> None:
    """Show what would be sent in [from, to), and check expectations. Nothing is stored or read."""
    asked = Asked(files, since, until, down or (), zone, limit, check)
    show(context, simulation(installation(context), asked))
