"""`minutebook export`: actions for another scheduler, with a report of the differences."""

from typing import Annotated

import typer

from cli.arguments import existing, of
from cli.render import show
from moving.commands import print_report
from moving.views import exports
from moving.views.exports import Format


def export(
    context: typer.Context,
    format: Annotated[Format, typer.Option("--format", help="What to print.")] = "json",
    owner: Annotated[str | None, typer.Option(help="Only actions of this owner.")] = None,
    zone: Annotated[
        str | None,
        typer.Option(help="Zone of a schedule for beat (default: that of most actions)."),
    ] = None,
) -> None:
    """Print the actions of a small app for another scheduler, and a report."""
    from moving.texts import report_of_export

    documents = exports.documents_of(existing(context), owner)
    made = exports.export(of(context), documents, format, zone)
    print_report(context, report_of_export(made))
    show(context, made)
