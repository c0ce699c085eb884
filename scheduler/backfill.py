"""metatask_schedule: run a range of an action's past, in batches of one transaction each.

A worker for the queue `default` loads this module by name. What a batch recorded stays when the
worker dies; the sweep asks another one to go on.
"""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import sqlalchemy as sa

from models.errors import Refused
from models.plan import Plan
from models.sql import read_clock
from models.store import audit, backfills, cursors, operations
from models.store.backfills import Turn
from models.store.outbox import Message
from models.values import format_instant
from runtime.database import reading
from scheduler.fingerprint import operation_id
from scheduler.occurrence import next_occurrence, next_occurrences
from scheduler.ranges import (
    BATCH,
    CALLED_OFF,
    SECOND,
    Mode,
    Share,
    Wanted,
    check_range,
    next_minute,
    sort_out,
    triggerer,
)
from scheduler.record import operation_row
from scheduler.repeat import again, repeatable_plan
from scheduler.revise import subject_of
from scheduler.spans import take_out
from tasks.app import app, settings_in_use
from tasks.engines import engine_of
from tasks.lease import stopping
from tasks.names import METATASK_SCHEDULE
from tasks.sending import Sent, send_backfills, send_reserved

logger = logging.getLogger("minutehand.backfill")

# More of an action's operations that somebody asked for do not wait at a time.
MOST_UNSTARTED = 2_000
NO_ROOM = timedelta(seconds=15)
DATABASE_AWAY = (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.InternalError)


def rehearse(engine: sa.Engine, wanted: Wanted, kept_for: timedelta) -> dict[str, Any]:
    """Return what a backfill would do, as JSON; nothing is stored. Raises Refused like `start`."""
    totals: dict[str, Any] = {"recorded": 0, "repeated": 0, "passed_over": 0}
    firsts: list[datetime] = []
    cursor: datetime | None = wanted.since
    with engine.begin() as connection:
        row = cursors.lock(connection, wanted.uid)
        plan = _fillable_plan(row)
        check_range(wanted, read_clock(connection), kept_for)
    # Counting may take a while: the action is not kept locked for it.
    with reading(engine) as connection:
        while cursor is not None:
            some = _occurrences(plan, wanted.uid, cursor, wanted.last)
            share = _share(connection, wanted, some, BATCH)
            firsts = firsts or some[:1]
            last = some[-1] if some else cursor
            totals |= {key: totals[key] + count for key, count in share.counts.items()}
            cursor = last if len(some) == BATCH else None
    if not firsts:
        raise _no_occurrence(row.name, plan, wanted)
    return totals | {"first": firsts[0], "last": last}


def start(engine: sa.Engine, wanted: Wanted, actor: str, kept_for: timedelta) -> tuple[UUID, Sent]:
    """Store a backfill and ask a worker to work it off; return its id.

    Raises Refused, with nothing stored, when the action cannot run or the range cannot be filled.
    When the broker is away, the daemon asks a worker later.
    """
    id = uuid4()
    with engine.begin() as connection:
        row = cursors.lock(connection, wanted.uid)
        plan = _fillable_plan(row)
        check_range(wanted, read_clock(connection), kept_for)
        if not _occurrences(plan, wanted.uid, wanted.since, wanted.last):
            raise _no_occurrence(row.name, plan, wanted)
        ranged = {"since": wanted.since, "until": wanted.last, "mode": wanted.mode}
        whose = {"id": id, "small_app_id": row.small_app_id, "action_uid": wanted.uid}
        backfills.insert(connection, {**whose, **ranged, "pace": wanted.pace, "actor": actor})
        _audit(connection, row, actor, "start", {"backfill": str(id), "mode": wanted.mode})
    return id, send_backfills(engine, [(id, 1)])


def _fillable_plan(row: sa.Row[Any]) -> Plan:
    plan = repeatable_plan(row)
    if row.event is not None:
        told = f"{row.name!r} is about the event {row.event!r}: its occurrences come from events"
        raise Refused(f"{told}, not from a clock; there is nothing to fill")
    return plan


def cancel(engine: sa.Engine, uid: UUID, actor: str) -> tuple[list[UUID], int]:
    """Stop an action's active backfills; return their ids and how many operations are cancelled.

    Those are what they recorded and nobody has started; what runs goes on to its end. Raises
    Refused when none is active.
    """
    with engine.begin() as connection:
        # In the order of a worker that fills: it holds its backfill, and then locks the action.
        stopped = backfills.cancel_active(connection, [uid], f"cancelled by {actor}")
        row = cursors.lock(connection, uid)
        if not stopped:
            raise Refused(f"{row.name!r} has no active backfill")
        count = sum(
            backfills.cancel_unstarted(connection, uid, triggerer(id, by), CALLED_OFF)
            for id, by in stopped
        )
        _audit(connection, row, actor, "cancel", {"backfills": [str(id) for id, _ in stopped]})
    return [id for id, _ in stopped], count


def _audit(
    connection: sa.Connection, row: sa.Row[Any], actor: str, verb: str, details: dict[str, Any]
) -> None:
    audit.write(
        connection,
        small_app_id=row.small_app_id,
        actor=actor,
        verb=f"backfill.{verb}",
        objects={str(row.action_uid): details},
    )


def _no_occurrence(name: str, plan: Plan, wanted: Wanted) -> Refused:
    first, last = format_instant(wanted.first), format_instant(wanted.last)
    following = next_occurrence(plan, wanted.uid, wanted.last)
    hint = f"; its next one is {format_instant(following)}" if following else ""
    return Refused(f"{name!r} has no occurrence from {first} to {last}{hint}")


def _occurrences(plan: Plan, uid: UUID, since: datetime, until: datetime) -> list[datetime]:
    """Return up to a batch of the plan's occurrences in (since, until], ascending."""
    return [at for at in next_occurrences(plan, uid, since, BATCH) if at <= until]


def _share(
    connection: sa.Connection, wanted: Wanted, occurrences: Sequence[datetime], most: int
) -> Share:
    if not occurrences:
        return Share()
    ends = occurrences[0] - SECOND, occurrences[-1]
    found = backfills.found_in(connection, wanted.uid, *ends)
    return sort_out(wanted.uid, occurrences, found, wanted.mode, most)


def work_off(engine: sa.Engine, turn: Turn) -> str:
    """Work off a backfill batch by batch; return why it ended here.

    It goes on while it is this attempt's turn, there is room and time, and the broker takes what is
    recorded; else the sweep asks again when `not_before` has come.
    """
    while not stopping.is_set():
        with engine.begin() as connection:
            batch = _batch(connection, turn)
        sent = send_reserved(engine, batch.messages)
        if batch.next_turn is None:
            return batch.told
        turn = batch.next_turn
        if sent.error is not None:
            return "broker unavailable"
    with engine.begin() as connection:
        backfills.put_off(connection, [turn], timedelta(0))
    return "the worker stops"


@dataclass(frozen=True, slots=True)
class Batch:
    """What a batch recorded, to be sent; whose turn it is next, or why nobody's."""

    messages: tuple[Message, ...] = ()
    next_turn: Turn | None = None
    told: str = ""


def _batch(connection: sa.Connection, turn: Turn) -> Batch:
    """Work off one batch in the caller's transaction."""
    row = backfills.hold(connection, turn)
    if row is None:
        return Batch(told="not this attempt's turn")
    action = cursors.lock(connection, row.action_uid)
    try:
        plan = _fillable_plan(action)
    except (Refused, ValueError) as error:
        backfills.finish(connection, row.id, "failed", str(error))
        return Batch(told="failed")
    most = min(BATCH, row.pace or BATCH, _room(connection, row.action_uid))
    if most <= 0:
        attempt = backfills.move_on(connection, row, {}, row.cursor)
        backfills.put_off(connection, [(row.id, attempt)], NO_ROOM)
        return Batch(told="too many wait")
    some = _occurrences(plan, row.action_uid, row.cursor, row.until)
    wanted = Wanted(row.action_uid, row.since + SECOND, row.until, Mode(row.mode), row.pace)
    share = _share(connection, wanted, some, most)
    messages = _run(connection, action, plan, share, triggerer(row.id, row.actor))
    attempt = backfills.move_on(connection, row, share.counts, share.last or row.until)
    if len(some) < BATCH and (not some or share.last == some[-1]):
        backfills.finish(connection, row.id, "done")
        return Batch(messages, told="done")
    if row.pace and messages:
        # Not before the next minute of the clock; the tick at its beginning asks again.
        backfills.wait_until(connection, row.id, next_minute(read_clock(connection)))
        return Batch(messages, told="paced")
    return Batch(messages, (row.id, attempt))


def _room(connection: sa.Connection, uid: UUID) -> int:
    return MOST_UNSTARTED - backfills.count_unstarted(connection, uid)


def _run(
    connection: sa.Connection, action: sa.Row[Any], plan: Plan, share: Share, by: str
) -> tuple[Message, ...]:
    """Record what is missing, make pending what is to run again; return the messages."""
    subject, uid = subject_of(action), action.action_uid
    rows = [operation_row(subject, plan, operation_id(uid, at), at, by) for at in share.record]
    new = operations.record(connection, rows)
    take_out(connection, uid, [row["occurrence_at"] for row in rows if row["id"] in new])
    first = [Message(row["id"], 1, row["task"], row["queue"]) for row in rows if row["id"] in new]
    repeated = [again(connection, action, plan, row, by) for row in share.repeat]
    return (*first, *(message for message in repeated if message is not None))


@app.task(name=METATASK_SCHEDULE)
def metatask_schedule(backfill_id: str, attempt: int) -> str:
    """Work off a backfill, in that attempt; return what became of it."""
    told = run_turn(engine_of(os.getpid(), settings_in_use()), (UUID(backfill_id), attempt))
    logger.info("backfill %s attempt %d: %s", backfill_id, attempt, told)
    return told


def run_turn(engine: sa.Engine, turn: Turn) -> str:
    """Work off a backfill; a fault that nobody foresaw ends it, and is on record there."""
    try:
        return work_off(engine, turn)
    except DATABASE_AWAY as error:
        # The sweep asks again.
        return f"database unavailable: {error.orig}"
    except Exception as error:
        logger.exception("backfill %s failed", turn[0])
        with engine.begin() as connection:
            backfills.finish(connection, turn[0], "failed", f"{type(error).__name__}: {error}")
        return "failed"
