"""`minutebook app data`: what the data product adds to the group `app`."""

import csv
import json
import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

import typer

from cli.apps import commands
from cli.arguments import existing
from cli.render import print_exactly
from data.snapshots.json_rows import Row, json_line, json_value
from data.views.rows import open_rows
from runtime.visible import visible_json


class Format(StrEnum):
    """How rows are printed."""

    JSONL = "jsonl"
    CSV = "csv"


@commands.command("data")
def data(
    context: typer.Context,
    app: Annotated[str, typer.Argument(help="A small app.", metavar="APP")],
    domain: Annotated[str, typer.Argument(help="One of its domains.", metavar="DOMAIN")],
    *,
    staging: Annotated[
        bool, typer.Option("--staging", help="Rows that were refreshed but not published yet.")
    ] = False,
    format: Annotated[Format, typer.Option(help="jsonl or csv.")] = Format.JSONL,
) -> None:
    """Print the published rows of a domain, all of one version."""
    with existing(context).ask(open_rows, app, domain, is_staged=staging) as rows:
        if format is Format.CSV:
            _print_csv(rows)
        else:
            for row in rows:
                sys.stdout.write(visible_json(json_line(row)) + "\n")


class _Output:
    """Takes what a writer of CSV writes."""

    def write(self, text: str) -> None:
        """Print it."""
        print_exactly(text)


def _print_csv(rows: Iterable[Row]) -> None:
    """Print rows as CSV with a header; lines end with a newline alone."""
    writer = csv.writer(_Output(), lineterminator="\n")
    for number, row in enumerate(rows):
        if number == 0:
            writer.writerow(row)
        writer.writerow([_cell(value) for value in row.values()])


def _cell(value: object) -> object:
    match value:
        case None | str():
            return value
        case bool() | list() | dict():
            return json.dumps(value, ensure_ascii=False, default=json_value)
        case int() | float():
            return value
        case _:
            return json_value(value)
