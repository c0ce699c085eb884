"""Python rows of a query or a reader to a JSON Lines file, bounded and counted."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

from data.bad_rows import BadRow, BadRows, short
from data.failures import check_size
from minutebook.error_text import text_of
from tasks.bounded.limits import Watch

REPORT_ROWS = 1_000
Mapper = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of one read, and its display name."""

    shown: str
    max_bytes: int
    watch: Watch


def write_rows(
    rows: Iterable[Any], target: Path, bounds: Bounds, mapper: Mapper | None = None
) -> BadRows:
    """Write `rows`, mapped, to `target`, one line each; return the rows left out.

    A row left out becomes a blank line, so that line numbers are row numbers. Raises the errors of
    `rows`, SourceFailed above `max_bytes`, and Stopped.
    """
    bad_rows, size = BadRows(unit="row"), 0
    number = 0
    with target.open("w", encoding="utf-8") as stream:
        for number, row in enumerate(rows, 1):
            line = _line(row, number, mapper, bad_rows)
            size += stream.write(line + "\n")
            _check(number, size, bounds)
    bounds.watch.progress(number, number)
    return bad_rows


def _check(number: int, size: int, bounds: Bounds) -> None:
    check_size(f"{bounds.shown} returns more", size, bounds.max_bytes)
    if number % REPORT_ROWS == 0:
        bounds.watch.check()
        bounds.watch.progress(number, None)


def _line(row: Any, number: int, mapper: Mapper | None, bad_rows: BadRows) -> str:
    """Return the row as JSON; an empty text if it is dropped or left out."""
    try:
        mapped = row if mapper is None else mapper(row)
        if mapped is None:
            return ""
        if not isinstance(mapped, Mapping):
            raise TypeError("is not a row; return a dict")
        return json.dumps({str(key): value for key, value in mapped.items()}, default=_as_json)
    except MemoryError:
        raise
    except Exception as error:  # one bad row, or an error of a user's mapper
        why = str(error) if mapper is None else text_of(error)
        bad_rows.add(1, [BadRow(number, None, short(row), why)])
        return ""


def _as_json(value: object) -> object:
    """Return a value that JSON does not have, without loss of digits. Raises TypeError."""
    match value:
        case Decimal():
            return f"{value:f}"
        case datetime() if value.tzinfo is not None:
            return f"{value.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
        case date() | time() | timedelta() | UUID():
            return str(value)
        case Mapping():
            return dict(value)
        case set() | frozenset():
            return list(value)
        case Enum():
            return value.value
        case _:
            kind = type(value).__name__
            raise TypeError(f"a {kind} cannot be stored; convert it to a text or a number")
