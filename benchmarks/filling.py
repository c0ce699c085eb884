"""Fill a database quickly with many actions and operations: COPY or executemany of raw rows.

Rules and zones are Zipf-like: the first is about as frequent as the second and third together. Each
row comes from a document validated as by `action apply`; only name and uid differ.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from random import Random
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.action.document import ParseContext, document_hash
from models.action.plan import Plan
from models.fingerprint import operation_id
from models.operation import by_action
from models.sql import read_clock
from models.store.actions import cursors
from models.store.operations.record import record_new
from runtime.database import reading
from scheduler.changes import Change
from scheduler.changes.revisions import revision_of
from scheduler.occurrence import next_occurrence
from scheduler.record import ActionRef, operation_row
from tasks.built_in import built_in_steps

# Whole hours from UTC: a rule's minute is the same in each.
ZONES = (
    *("Europe/Paris", "America/New_York", "UTC", "Asia/Tokyo", "America/Los_Angeles"),
    *("Europe/London", "America/Sao_Paulo", "Asia/Shanghai", "Africa/Lagos", "Europe/Athens"),
)
BATCH = 20_000
DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
NEVER = datetime(2099, 1, 1, tzinfo=UTC)
NAMED = "@name@"


@dataclass(frozen=True)
class Variant:
    """A validated document to copy under many names."""

    document: str
    plan: Plan
    plan_text: str


@dataclass(frozen=True)
class Filling:
    """The actions to make, decided until `behind` before `now`; `due` of them at every full minute.

    `when` replaces the rules of the due ones, `beside` those of the rest.
    """

    count: int
    now: datetime
    due: int = 0
    behind: timedelta = MINUTE
    when: str | None = None
    beside: Sequence[str] = ()


# Each matches every full minute in every zone.
EVERY_MINUTE = ("* * * * *", "*/1 * * * *", "0-59 * * * *", "* 0-23 * * *")


def rules_beside(minute: int) -> list[str]:
    """Return rules without a match from 15 minutes before `minute` to 25 after it."""
    far = [(minute + offset) % 60 for offset in (25, 30, 35, 40, 45)]
    return [
        *(f"{far[0]} 7 * * *", f"{far[1]} * * * *", f"{far[2]} 7 * * 1", f"{far[3]} 9 * * 1-5"),
        *(f"{far[4]} 4 * * *", f"{far[0]} */2 * * *", f"{far[1]} 6 1,15 * *", f"{far[2]} 0 1 * *"),
        *(f"{far[3]} 8-18 * * 1-5", f"{far[4]} 0 1 1 *"),
    ]


def document(name: str, when: dict[str, str], step: str = "maintenance") -> dict[str, Any]:
    """Return the document of an action."""
    return {"name": name, "operations": {step: True}, "when": when, "owner": "benchmarks"}


def whens(rules: Sequence[str]) -> list[dict[str, str]]:
    """Return each rule in each zone, diagonally: neither rules nor zones form blocks."""
    return [
        {
            "cron_rule": rules[number % len(rules)],
            "timezone": ZONES[(number // len(rules) + number) % len(ZONES)],
        }
        for number in range(len(rules) * len(ZONES))
    ]


def fill_actions(engine: sa.Engine, filling: Filling) -> list[UUID]:
    """Store actions, decided until `behind` before `now`; return the uids due at `now`."""
    random = Random(19)
    interval = {"every": filling.when or "", "starting_at": "2026-01-01T00:00:00Z"}
    due = _variants([interval] if filling.when else whens(EVERY_MINUTE), filling.now)
    other = _variants(whens(filling.beside or rules_beside(filling.now.minute)), filling.now)
    every = filling.count // filling.due if filling.due else 0
    made = []
    uids_due = []
    for number in range(filling.count):
        is_due = bool(every) and number % every == 0 and number // every < filling.due
        uid = UUID(int=random.getrandbits(128), version=4)
        made.append((uid, number, _zipf(random, due if is_due else other)))
        if is_due:
            uids_due.append(uid)
    watermark = filling.now - filling.behind
    app, then = 1, instant(watermark)
    bulk_insert(
        engine,
        "actions",
        "uid small_app_id name owner active document document_hash plan revision created_at "
        "updated_at",
        (
            (str(uid), app, f"action {n}", "benchmarks", True, *_texts(one, n), 1, then, then)
            for uid, n, one in made
        ),
    )
    bulk_insert(
        engine,
        "revisions",
        "action_uid number document plan author effective_from",
        (
            (str(uid), 1, one.document.replace(NAMED, f"action {n}"), one.plan_text, "x", then)
            for uid, n, one in made
        ),
    )
    next_at = {id(one): _next_text(one, watermark) for one in (*due, *other)}
    bulk_insert(
        engine,
        "action_cursor",
        "action_uid watermark next_occurrence_at effective_from",
        ((str(uid), then, next_at[id(one)], then) for uid, _, one in made),
    )
    return uids_due


def record_one_each(engine: sa.Engine, made: Iterable[Change], now: datetime) -> list[UUID]:
    """Record an operation, to send at once, for each of these actions; return their ids."""
    at = now.replace(second=0, microsecond=0)
    rows = [
        operation_row(
            ActionRef(one.uid, 1, one.name, 1),
            one.plan,
            operation_id(one.uid, at),
            at,
            by_action(one.name),
        )
        for one in made
    ]
    with engine.begin() as connection:
        record_new(connection, rows)
        # Recorded operations are reserved for half a minute.
        connection.exec_driver_sql("UPDATE operations SET not_before = recorded_at")
    return [row["id"] for row in rows]


def bulk_insert(engine: sa.Engine, table: str, columns: str, rows: Iterable[Sequence[Any]]) -> None:
    """Insert raw rows in batches, without checks of foreign keys."""
    names = columns.split()
    rest = iter(rows)
    while batch := list(islice(rest, BATCH)):
        with engine.begin() as connection:
            raw: Any = connection.connection.driver_connection
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("SET LOCAL session_replication_role = replica"))
                with raw.cursor().copy(f"COPY {table} ({', '.join(names)}) FROM STDIN") as copy:
                    for row in batch:
                        copy.write_row(row)
            else:
                # Random ids go all over the indexes: their pages stay in memory.
                raw.execute("PRAGMA cache_size = -400000")
                marks = ", ".join("?" * len(names))
                raw.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", batch)


def release(
    engine: sa.Engine, uids: Sequence[UUID], at: datetime, behind: timedelta = MINUTE
) -> None:
    """Make actions of every full minute due at `at`, decided until `behind` before it."""
    _move(engine, uids, at - behind, at)


def park(engine: sa.Engine, uids: Sequence[UUID]) -> None:
    """Make actions never due."""
    with reading(engine) as connection:
        now = read_clock(connection)
    _move(engine, uids, now, NEVER)


def _move(engine: sa.Engine, uids: Sequence[UUID], watermark: datetime, at: datetime) -> None:
    with engine.begin() as connection:
        moves = [
            {"action_uid": uid, "watermark": watermark, "next_occurrence_at": at} for uid in uids
        ]
        cursors.advance(connection, moves)


def analyze(engine: sa.Engine, tables: str = "") -> None:
    """Update the planner's statistics, like autovacuum; `tables` by commas, or all."""
    is_postgresql = engine.dialect.name == "postgresql"
    statement = f"SET statement_timeout = 0; VACUUM ANALYZE {tables}"
    raw = engine.raw_connection()
    try:
        driver: Any = raw.driver_connection
        if is_postgresql:
            driver.autocommit = True
            for part in statement.split(";"):
                driver.execute(part)
        else:
            driver.execute("ANALYZE")
    finally:
        raw.invalidate()


def instant(at: datetime) -> str:
    """Return an aware UTC instant as text that both databases take."""
    return at.isoformat(" ", "microseconds").removesuffix("+00:00")


def _variants(rules: Sequence[dict[str, str]], now: datetime) -> list[Variant]:
    context = ParseContext(
        default_zone="UTC", now=now - DAY, tick=timedelta(seconds=5), steps=built_in_steps()
    )
    found = []
    for when in rules:
        made = revision_of(document(NAMED, when), context, "benchmarks")
        found.append(Variant(made.columns["document"], made.plan, made.columns["plan"]))
    return found


def _zipf(random: Random, variants: Sequence[Variant]) -> Variant:
    """Return a variant; the probability of rank r is proportional to 1/r."""
    return variants[int(len(variants) ** random.random()) - 1]


def _texts(one: Variant, number: int) -> Iterator[str]:
    text = one.document.replace(NAMED, f"action {number}")
    yield text
    yield document_hash(json.loads(text), steps=built_in_steps())
    yield one.plan_text


def _next_text(one: Variant, after: datetime) -> str | None:
    found = next_occurrence(one.plan, UUID(int=0), after)
    return None if found is None else instant(found)
