"""Rows of Python's to a file of JSON Lines: what a query or a reader gives, bounded and counted."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

from runtime.data_sections import FetchSettings
from small_apps.failures import SourceFailed
from small_apps.importing.bad_rows import Fault, Faults, short
from small_apps.watch import Watch

REPORT_ROWS = 1_000
Mapper = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may come, and of what."""

    shown: str
    settings: FetchSettings
    watch: Watch


def write_rows(
    rows: Iterable[Any], target: Path, bounds: Bounds, mapper: Mapper | None = None
) -> Faults:
    """Write `rows`, mapped, to `target`, a line for each; return which were left out.

    A row that is left out is a blank line, so that lines count rows. Raises what `rows` raises,
    SourceFailed for more than the settings allow, and Stopped.
    """
    faults, size = Faults(unit="row"), 0
    number = 0
    with target.open("w", encoding="utf-8") as stream:
        for number, row in enumerate(rows, 1):
            line = _line(row, number, mapper, faults)
            size += stream.write(line + "\n")
            _check(number, size, bounds)
    bounds.watch.progress(number, number)
    return faults


def _check(number: int, size: int, bounds: Bounds) -> None:
    if size > bounds.settings.max_bytes:
        raise SourceFailed(
            f"{bounds.shown} gives more than SCHED_FETCH_MAX_BYTES={bounds.settings.max_bytes}",
            permanent=True,
        )
    if number % REPORT_ROWS == 0:
        bounds.watch.check()
        bounds.watch.progress(number, None)


def _line(row: Any, number: int, mapper: Mapper | None, faults: Faults) -> str:
    """Return the row as JSON; an empty text when it is dropped or left out."""
    try:
        mapped = row if mapper is None else mapper(row)
        if mapped is None:
            return ""
        if not isinstance(mapped, Mapping):
            raise TypeError("is no row; write a dict")
        return json.dumps({str(key): plain(value) for key, value in mapped.items()})
    except Exception as error:  # a row's own fault, also in a user's mapper
        why = str(error) if mapper is None else f"{type(error).__name__}: {error}"
        faults.add(1, [Fault(number, None, short(row), why)])
        return ""


def plain(value: Any) -> Any:
    """Return a value as JSON has it, to its last digit. Raises TypeError for what it cannot be."""
    if value is None or isinstance(value, bool | str):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal):
        return format(value, "f") if value.is_finite() else str(value)
    return _of_other(value)


def _of_other(value: Any) -> Any:
    if isinstance(value, datetime):
        aware = value.tzinfo is not None
        return (
            f"{value.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
            if aware
            else (value.isoformat())
        )
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta | UUID):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, Enum):
        return plain(value.value)
    raise TypeError(f"a {type(value).__name__} cannot be kept; make a text or a number of it")
