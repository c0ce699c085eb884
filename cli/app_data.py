"""`minutehand app data`: print the rows of a domain."""

import csv
import json
import math
import sys
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

import typer

from cli.arguments import existing
from runtime.visible import visible_json
from views.words import instant

Row = Mapping[str, Any]


class Format(StrEnum):
    """How rows are printed."""

    JSONL = "jsonl"
    CSV = "csv"


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
    from small_apps.snapshots.production import open_version

    opened = existing(context)
    engine, settings = opened.engine, opened.settings
    with open_version(
        engine, settings, app, "staging" if staging else "production", [domain]
    ) as version:
        if format is Format.CSV:
            _print_csv(version.rows(domain))
        else:
            for row in version.rows(domain):
                text = json.dumps(_finite(row), ensure_ascii=False, default=_as_json)
                sys.stdout.write(visible_json(text) + "\n")


def _finite(value: object) -> object:
    """Return the value with null for the numbers that JSON does not have."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case list():
            return [_finite(item) for item in value]
        case _:
            return value


def _print_csv(rows: Iterable[Row]) -> None:
    """Print rows as CSV with a header; lines end with a newline alone."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for number, row in enumerate(rows):
        if number == 0:
            writer.writerow(row)
        writer.writerow([_cell(value) for value in row.values()])


def _cell(value: object) -> object:
    match value:
        case None | str():
            return value
        case bool() | list() | dict():
            return json.dumps(value, ensure_ascii=False, default=_as_json)
        case int() | float():
            return value
        case _:
            return _as_json(value)


def _as_json(value: object) -> object:
    """Return a JSON value for an exact number, an instant or a date; text for another value."""
    match value:
        case Decimal():
            return _number(value)
        case datetime():
            return instant(value) if value.tzinfo is not None else value.isoformat()
        case date() | time():
            return value.isoformat()
        case _:
            return str(value)


def _number(value: Decimal) -> int | float | str:
    """Return the number, as text if a JSON reader would round it."""
    if value == value.to_integral_value():
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else str(value)
