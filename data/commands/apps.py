"""`minutebook app data`: what the data product adds to the group `app`."""

import sys
from typing import Annotated

import typer

from cli.apps import commands
from cli.arguments import existing
from data.services.rows import open_rows
from data.snapshots.json_rows import json_line
from runtime.visible import visible_json


@commands.command("data")
def data(
    context: typer.Context,
    app: Annotated[str, typer.Argument(help="A small app.", metavar="APP")],
    domain: Annotated[str, typer.Argument(help="One of its domains.", metavar="DOMAIN")],
    *,
    staging: Annotated[
        bool, typer.Option("--staging", help="Rows that were refreshed but not published yet.")
    ] = False,
) -> None:
    """Print the published rows of a domain, all of one version."""
    with existing(context).call(open_rows, app, domain, is_staged=staging) as rows:
        for row in rows:
            sys.stdout.write(visible_json(json_line(row)) + "\n")
