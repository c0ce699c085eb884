"""`minutebook export`: actions for another scheduler, with a report of the differences."""

from typing import Annotated

import typer

from cli.arguments import existing, of
from cli.render import show
from moving.importing import print_report
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
    celery_app: Annotated[
        str | None,
        typer.Option(help="Application, as for celery -A, by which a crontab sends Celery tasks."),
    ] = None,
) -> None:
    """Print the actions of a small app for another scheduler, and a report."""
    from moving.texts import report_of_export

    documents = exports.documents_of(existing(context), owner)
    made = exports.export(of(context), documents, format, zone, celery_app, _runs_by(context))
    print_report(context, report_of_export(made))
    show(context, made)


def _runs_by(context: typer.Context) -> tuple[str, ...]:
    """Return the command that runs an action of this small app from any folder."""
    its = of(context)
    home = () if its.server is not None else ("--home", str(its.settings.home.absolute()))
    return ("minutebook", *home, "--app", its.app_name, "action", "run")
