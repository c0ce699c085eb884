"""What commands print: JSON for machines, aligned text for people. Errors: one line on stderr."""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

LONGEST_CELL = 60


def plain(value: object) -> Any:
    """Return a value as JSON has it: instants as `2026-11-23T06:00:00Z`, ids as text."""
    match value:
        case datetime():
            return instant(value)
        case UUID():
            return str(value)
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return value


def print_json(value: object) -> None:
    """Print a value as JSON."""
    print_line(json.dumps(plain(value), indent=2, ensure_ascii=False, default=str))


def print_line(text: str = "") -> None:
    """Print a line on stdout."""
    sys.stdout.write(f"{text}\n")


def print_error(text: str) -> None:
    """Print one line on stderr for each line of an error."""
    for line in text.splitlines() or [""]:
        sys.stderr.write(f"error: {line}\n")


def instant(at: datetime | None) -> str:
    """Return an instant in UTC to the second, `-` for none."""
    return "-" if at is None else at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def in_zone(at: datetime, zone: str) -> str:
    """Return an instant on the clock of a zone: `Mon 2026-11-23 07:00 +01:00`."""
    local = at.astimezone(ZoneInfo(zone))
    clock = "%H:%M:%S" if local.second else "%H:%M"
    offset = local.strftime("%z")
    return f"{local.strftime(f'%a %Y-%m-%d {clock}')} {offset[:3]}:{offset[3:]}"


def print_table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
    """Print rows under headings; `columns` maps keys to headings."""
    cells = [[_cell(row[key]) for key in columns] for row in rows]
    headings = list(columns.values())
    widths = [max(len(line[i]) for line in [headings, *cells]) for i in range(len(headings))]
    for line in [headings, *cells]:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print_line("  ".join(padded).rstrip())


def _cell(value: object) -> str:
    text = "-" if value is None else str(plain(value)).split("\n", 1)[0]
    return text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…"
