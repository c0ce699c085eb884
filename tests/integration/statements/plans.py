"""Statements as the real functions execute them, and how the database would run them."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy import event

BIG = {"actions", "action_cursor", "operations", "revisions", "attempts", "holder", "notices"}
# Partial indexes hold what is not ended or not sent, or the few actions on events, quarantined, or
# with some key: reading one whole is reading what is due, or shown.
PARTIAL = {
    "actions_on_events",
    "actions_refreshing",
    "actions_quarantined",
    "operations_to_send",
    "operations_waiting",
    "operations_heartbeat_stale",
    "operations_one_running",
    "operations_unstarted",
    "backfills_to_send",
    "operations_overdue",
    "operations_jobs",
    "notices_owed",
}
EXPLAINED = ("SELECT", "UPDATE", "DELETE", "INSERT", "WITH")


@dataclass(frozen=True)
class Read:
    """One access to a table: by which index, and whether all of it is read."""

    table: str
    index: str | None
    is_whole: bool

    @property
    def is_scan(self) -> bool:
        """Whether it reads a big table from end to end."""
        return self.table in BIG and self.is_whole and self.index not in PARTIAL


@dataclass
class Statements:
    """What an engine executed, each text once, with its parameters."""

    engine: sa.Engine
    # PostgreSQL keeps one plan for all parameters of what is executed again and again.
    is_repeated: bool = True
    seen: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def captured(self) -> Iterator["Statements"]:
        event.listen(self.engine, "before_cursor_execute", self._note)
        try:
            yield self
        finally:
            event.remove(self.engine, "before_cursor_execute", self._note)

    def _note(self, _c: Any, _cursor: Any, text: str, parameters: Any, *_: Any) -> None:
        # A list has one entry for each row of `executemany`.
        given = parameters[0] if isinstance(parameters, list) else parameters
        if text.lstrip().upper().startswith(EXPLAINED):
            self.seen.setdefault(text, given)

    def reads(self) -> dict[str, list[Read]]:
        """Return what each statement reads, by its text, by every plan it may get."""
        with self.engine.connect() as connection:
            raw: Any = connection.connection.driver_connection
            if connection.dialect.name == "sqlite":
                return {text: _sqlite_reads(raw, text, given) for text, given in self.seen.items()}
            plans = [_custom_reads, *([_generic_reads] if self.is_repeated else [])]
            return {
                text: [read for reads in plans for read in reads(raw, text, given)]
                for text, given in self.seen.items()
            }

    def scans(self) -> list[str]:
        return [
            f"{read.table} by {read.index}: {text}"
            for text, reads in self.reads().items()
            for read in reads
            if read.is_scan
        ]

    def indexes(self) -> set[str]:
        return {read.index for reads in self.reads().values() for read in reads if read.index}


def _sqlite_reads(raw: Any, text: str, parameters: Any) -> list[Read]:
    rows = raw.execute(f"EXPLAIN QUERY PLAN {text}", parameters).fetchall()
    pattern = r"(SCAN|SEARCH) (\w+)(?: USING (?:COVERING )?(?:INDEX (\w+)|INTEGER PRIMARY KEY))?"
    found = [re.match(pattern, row[3]) for row in rows]
    return [Read(m[2], m[3], m[1] == "SCAN") for m in found if m and m[2] != "CONSTANT"]


def _custom_reads(raw: "psycopg.Connection[Any]", text: str, parameters: Any) -> list[Read]:
    cursor = raw.execute(f"EXPLAIN (FORMAT JSON) {text}".encode(), parameters)
    return list(_walk(_plan(cursor)))


def _generic_reads(raw: "psycopg.Connection[Any]", text: str, parameters: Any) -> list[Read]:
    """Return the reads of the plan that PostgreSQL makes once for all parameters.

    It may take that one for a statement that a daemon repeats.
    """
    numbered, values = _numbered(text, parameters)
    cursor = psycopg.ClientCursor(raw)
    cursor.execute("SET plan_cache_mode = force_generic_plan")
    cursor.execute("DEALLOCATE ALL")
    types = ["double precision" if isinstance(one, float) else "unknown" for one in values]
    named = f"({', '.join(types)})" if values else ""
    cursor.execute(f"PREPARE explained{named} AS {numbered}".encode())
    marks = f"({', '.join(['%s'] * len(values))})" if values else ""
    cursor.execute(f"EXPLAIN (FORMAT JSON) EXECUTE explained{marks}".encode(), values)
    plan = _plan(cursor)
    cursor.execute("SET plan_cache_mode = auto")
    return list(_walk(plan))


def _numbered(text: str, parameters: Mapping[str, Any]) -> tuple[str, Sequence[Any]]:
    names: list[str] = []

    def mark(found: re.Match[str]) -> str:
        if found[1] not in names:
            names.append(found[1])
        return f"${names.index(found[1]) + 1}"

    numbered = re.sub(r"%\((\w+)\)s", mark, text).replace("%%", "%")
    return numbered, [parameters[name] for name in names]


def _plan(cursor: Any) -> dict[str, Any]:
    (found,) = cursor.fetchone()
    plan: dict[str, Any] = (found if isinstance(found, list) else json.loads(found))[0]["Plan"]
    return plan


def _walk(plan: Mapping[str, Any], bitmap_of: str | None = None) -> Iterator[Read]:
    kind, table = plan["Node Type"], plan.get("Relation Name") or bitmap_of
    if kind == "Seq Scan":
        yield Read(str(table), None, True)
    elif "Index" in kind and "Index Name" in plan:
        yield Read(str(table), plan["Index Name"], "Index Cond" not in plan)
    for child in plan.get("Plans", ()):
        yield from _walk(child, table)
