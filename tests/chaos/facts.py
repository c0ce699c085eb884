"""The input of the checker: tables, side-effect log, journal; imports none of our code.

A row is a dict: instants are aware UTC, ids are text, JSON is parsed.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

Row = dict[str, Any]

COLUMNS = {
    "actions": "uid, deleted_at, quarantined",
    "revisions": "action_uid, number, document, effective_from",
    "action_cursor": "action_uid, watermark",
    "operations": "id, action_uid, revision, occurrence_at, subject, event_id, state, reason, "
    "error, triggerer, attempt, failures, losses, recorded_at, finished_at, "
    "backfill_id, task",
    "attempts": "operation_id, attempt, started_at, finished_at, state, error",
    "missed_spans": "action_uid, revision, first_at, last_at, reason",
    "notices": "operation_id, kind",
    "ticks": "now",
}

SOURCES = {
    # The row of an operation is its last attempt.
    "attempts": "(SELECT operation_id, attempt, started_at, finished_at, state, error FROM attempts"
    " UNION ALL SELECT id, attempt, started_at, finished_at, state, coalesce(error, reason)"
    " FROM operations WHERE worker IS NOT NULL) AS attempts",
}


@dataclass(frozen=True)
class Facts:
    """All rows by table; the lines of the log and the journal, as written."""

    tables: dict[str, list[Row]]
    log: list[Row]
    journal: list[Row] = field(default_factory=list)


def tables_by(read: Callable[[str], list[Any]]) -> dict[str, list[Row]]:
    """Return all rows that the checker looks at, by their tables."""
    return {
        table: _rows(columns, read(f"SELECT {columns} FROM {SOURCES.get(table, table)}"))
        for table, columns in COLUMNS.items()
    }


def read_lines(path: Path) -> list[Row]:
    """Return the lines of a JSON Lines file, oldest first."""
    if not path.exists():
        return []
    return [_line(json.loads(line)) for line in path.read_text().splitlines()]


def _line(line: Row) -> Row:
    instants = {
        key: datetime.fromtimestamp(line[key], UTC)
        for key in ("at", "since", "until")
        if line.get(key) is not None
    }
    shift = {"shift": timedelta(seconds=line["shift_s"])} if "shift_s" in line else {}
    return {**line, **instants, **shift}


def _rows(columns: str, found: list[Any]) -> list[Row]:
    names = columns.split(", ")
    return [
        {name: _value(name, value) for name, value in zip(names, row, strict=True)} for row in found
    ]


def instant_of(value: str | datetime) -> datetime:
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _value(name: str, value: Any) -> Any:
    if isinstance(value, UUID):
        return str(value)
    is_instant = name.endswith(("_at", "_from")) or name in {"now", "watermark"}
    if isinstance(value, datetime) or (is_instant and isinstance(value, str)):
        return instant_of(value)
    return json.loads(value) if name == "document" else value


class Journal:
    """The storm's record of its own acts: a file to which several threads may append."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, what: str, **values: object) -> None:
        """Append one fact: instants as seconds since 1970, ids as text."""
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, (json.dumps({"what": what, **values}) + "\n").encode())
        finally:
            os.close(file)
