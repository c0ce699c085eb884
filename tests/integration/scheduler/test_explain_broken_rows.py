"""Rubbish in any column of what `explain` reads stops neither it nor an estimate."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.sql import database_now
from models.store.operations import eta
from models.tables import action_cursor, metadata, operations
from runtime.config import Settings
from scheduler.explain import explain
from tests.factories import make_action
from tests.integration.scheduler.rubbish import Cell, takes_any_text, write
from tests.ticks import HOUR

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
RUBBISH = (
    None, "", b"\xff\x00", "infinity", 2**62, "1e999", "[" * 5_000,
    '[1, null, {"state": "running"}]',
    "9999-12-31 23:59:59.999999", "0001-01-01 00:00:00.000000",
)  # fmt: skip
OLD = database_now(-7200.0)
STATES: tuple[dict[str, Any], ...] = (
    {"state": "running", "worker": "gone", "heartbeat_at": OLD, "started_at": OLD, "attempt": 2},
    {"state": "pending", "attempt": 2},
    {"state": "queued", "sent_at": OLD},
    {"state": "pending", "task": "job"},
    {"state": "failed", "started_at": OLD, "finished_at": OLD, "error": "e"},
    {"state": "skipped", "finished_at": OLD, "reason": "overlap"},
    {
        "state": "success",
        "event_at": OLD,
        "event_id": "x failed",
        "started_at": OLD,
        "finished_at": OLD,
    },
)
# What an operation is found by.
KEYS = {"id", "action_uid", "occurrence_at"}
READ = (
    "actions", "revisions", "action_cursor", "operations", "attempts", "missed_spans",
    "ticks", "workers", "installation", "small_apps",
)  # fmt: skip


def made(connection: sa.Connection, action: UUID, number: int) -> UUID:
    """Make an operation in one of the states, with an attempt before it; return its id."""
    id = UUID(int=number + 1)
    common = {
        "id": id, "small_app_id": 1, "action_uid": action, "revision": 1, "queue": "quick",
        "task": "execute_scheduled_action_quick", "triggerer": 'Scheduled action "x"',
        "recorded_at": OLD, "not_before": OLD, "occurrence_at": NOON + number * HOUR,
        "steps": [{"name": "maintenance", "state": "running", "repeatable": True}],
    }  # fmt: skip
    connection.execute(sa.insert(operations).values(common | STATES[number]))
    tried = {"operation_id": id, "attempt": 1, "worker": "w", "started_at": OLD, "error": "e"}
    connection.execute(
        sa.insert(metadata.tables["attempts"]).values(**tried, finished_at=OLD, state="failed")
    )
    return id


def furnish(connection: sa.Connection, action: UUID) -> None:
    """Make what an explanation reads beside operations: a missed span, a tick and a worker."""
    made: dict[str, dict[str, Any]] = {
        "missed_spans": {"action_uid": action, "revision": 1, "count": 3, "reason": "too late",
                         "first_at": NOON - 5 * HOUR, "last_at": NOON - 3 * HOUR,
                         "recorded_at": OLD, "decided_at": NOON},
        "ticks": {"daemon": "d:1", "now": OLD, "finished_at": OLD, "duration_ms": 1.0,
                  "report": {"broker_error": "away"}},
        "workers": {"name": "w", "queues": "quick", "pid": 1, "started_at": OLD,
                    "seen_at": database_now(), "follows": ["shop.*"]},
        "pauses": {"kind": "all", "name": "", "by": "ann", "began_at": OLD},
    }  # fmt: skip
    for name, row in made.items():
        connection.execute(sa.insert(metadata.tables[name]).values(**row))
    its = action_cursor.c.action_uid == action
    connection.execute(sa.update(action_cursor).where(its).values(watermark=NOON))


def columns() -> Iterator[sa.Column[Any]]:
    for name in READ:
        table = metadata.tables[name]
        keys = KEYS if table is operations else {one.name for one in table.primary_key}
        yield from (one for one in table.c if one.name not in keys)


def test_rubbish_in_any_column_stops_no_explanation(engine: sa.Engine, settings: Settings) -> None:
    action = make_action(engine, when={"cron_rule": "0 * * * *"}, since=NOON - timedelta(days=1))
    told, taken = {}, 0
    is_postgresql = engine.dialect.name == "postgresql"
    with engine.connect() as connection, connection.begin() as whole:
        ids = [made(connection, action.uid, number) for number in range(len(STATES))]
        furnish(connection, action.uid)
        for column in columns():
            is_of_operation = column.table is operations
            # A missed span and an instant without a record come before the operations.
            looked = range(-1, len(STATES)) if is_of_operation else (-3, -1, 2)
            for rubbish in RUBBISH[:: 3 if takes_any_text(column, engine.dialect.name) else 1]:
                point = connection.begin_nested()
                if write(connection, Cell(column, rubbish), {}):
                    taken += 1
                    try:
                        for number in looked:
                            at = NOON + number * HOUR
                            explain(action.uid, at, connection, settings)
                        for id in ids if is_of_operation else ():
                            eta.estimate(connection, id)
                    except Exception as error:
                        told[f"{column} = {rubbish!r}"] = f"{type(error).__name__}: {error}"[:200]
                point.rollback()
        whole.rollback()

    assert not told, "\n".join(f"{one}: {why}" for one, why in told.items())
    assert taken > (100 if is_postgresql else 250)
