"""`minutehand export`: actions for another scheduler, with a report of what is lost."""

import sys
from typing import Annotated

import typer

from cli.all_apps import every
from cli.arguments import existing, of
from cli.render import show
from runtime.visible import visible_line
from views import actions
from views.actions import search
from views.moving import exports


def export(
    context: typer.Context,
    format: Annotated[exports.Format, typer.Option("--format", help="What to print.")] = "json",
    owner: Annotated[str | None, typer.Option(help="Only actions of this owner.")] = None,
    zone: Annotated[
        str | None,
        typer.Option(help="Zone of a schedule for beat (default: that of most actions)."),
    ] = None,
    image: Annotated[
        str | None, typer.Option(help="Image in which CronJobs of Kubernetes run.")
    ] = None,
    celery_app: Annotated[
        str | None,
        typer.Option(help="Application, as for celery -A, by which programs send Celery tasks."),
    ] = None,
) -> None:
    """Print the actions of a small app for another scheduler, and a report."""
    from cli.texts.moving import report_of_export

    opened = existing(context)
    rows = every(opened, search.list_actions, owner=owner)
    documents = {row.name: opened.ask(actions.show, str(row.uid)).document for row in rows}
    made = exports.export(of(context), documents, format, zone, exports.Place(image, celery_app))
    if not of(context).as_json:
        for line in report_of_export(made):
            sys.stderr.write(f"{visible_line(line)}\n")
    show(context, made)
