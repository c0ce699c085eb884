"""What commands print: JSON for machines, aligned text for people. Errors: one line on stderr."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from cli.render import print_error, print_line
from views.words import in_zone, instant

__all__ = ["in_zone", "instant", "plain", "print_error", "print_json", "print_line", "print_table"]

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
