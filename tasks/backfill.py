"""The task metatask_schedule: process backfills in batches of one transaction each.

A worker for the queue `default` loads this module by name. If the worker dies, the recorded batches
stay, and the sweep asks another worker to continue.
"""

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from broker.app import app
from broker.in_use import settings_in_use
from broker.sending import send_reserved
from minutebook.error_text import text_of
from models.action.plan import Plan
from models.carriers import METATASK_SCHEDULE
from models.errors import Refused
from models.fingerprint import operation_id
from models.operation import CausedBy, by_backfill
from models.store.actions import cursors
from models.store.operations import backfills
from models.store.operations.backfills import Turn
from models.store.operations.record import record_new
from models.store.operations.reserve import Message
from runtime.database import DATABASE_AWAY, reason_of
from runtime.logs.events import EventLog
from scheduler.changes.revisions import action_ref
from scheduler.kernel_release import OtherRelease, hold_release
from scheduler.occurrence import next_occurrences
from scheduler.on_demand.backfill import fillable_plan, share_of
from scheduler.on_demand.backfill_range import (
    BATCH,
    SECOND,
    BackfillRequest,
    Mode,
    Share,
)
from scheduler.on_demand.restart import again
from scheduler.record import operation_row
from tasks.engines import engine_of
from tasks.lease import stopping

logger = EventLog("minutebook.backfill")

# The most operations of an action, requested by users, that may wait to start.
MOST_UNSTARTED = 2_000
NO_ROOM = timedelta(seconds=15)


def work_off(engine: sa.Engine, turn: Turn) -> str:
    """Process a backfill batch by batch; return why it ended here.

    It continues while the turn is this attempt's, the backfill has room and time, and the broker
    takes what is recorded. Otherwise the sweep asks again from `not_before` on.
    """
    while not stopping.is_set():
        with engine.begin() as connection:
            batch = _batch(connection, turn)
        sent = send_reserved(engine, batch.messages)
        if batch.next_turn is None:
            return batch.reason
        turn = batch.next_turn
        if sent.error is not None:
            return "broker unavailable"
    with engine.begin() as connection:
        backfills.put_off(connection, [turn], timedelta(0))
    return "the worker stops"


@dataclass(frozen=True, slots=True)
class Batch:
    """What a batch recorded, to be sent, and the next turn or the reason why there is none."""

    messages: tuple[Message, ...] = ()
    next_turn: Turn | None = None
    reason: str = ""


def _batch(connection: sa.Connection, turn: Turn) -> Batch:
    """Process one batch in the caller's transaction."""
    row = backfills.hold(connection, turn)
    if row is None:
        return Batch(reason="not this attempt's turn")
    try:
        hold_release(connection)
    except OtherRelease as error:
        return _put_off(connection, row, str(error))
    return _fill(connection, row)


def _fill(connection: sa.Connection, row: sa.Row[Any]) -> Batch:
    """Process a batch of a locked backfill."""
    action = cursors.lock(connection, row.action_uid)
    try:
        plan = fillable_plan(connection, action)
    except (Refused, ValueError) as error:
        backfills.finish(connection, row.id, "failed", str(error))
        return Batch(reason="failed")
    room = MOST_UNSTARTED - backfills.count_unstarted(connection, row.action_uid)
    most = min(BATCH, room)
    if most <= 0:
        return _put_off(connection, row, "too many wait")
    some = next_occurrences(plan, row.action_uid, row.cursor, BATCH, row.until)
    wanted = BackfillRequest(row.action_uid, row.since + SECOND, row.until, Mode(row.mode))
    share = share_of(connection, wanted, some, most)
    messages = _run(connection, action, plan, share, by_backfill(row.id, row.actor))
    attempt = backfills.move_on(connection, row, share.counts, share.last or row.until)
    if len(some) < BATCH and (not some or share.last == some[-1]):
        backfills.finish(connection, row.id, "done")
        return Batch(messages, reason="done")
    return Batch(messages, (row.id, attempt))


def _put_off(connection: sa.Connection, row: sa.Row[Any], reason: str) -> Batch:
    attempt = backfills.move_on(connection, row, {}, row.cursor)
    backfills.put_off(connection, [(row.id, attempt)], NO_ROOM)
    return Batch(reason=reason)


def _run(
    connection: sa.Connection, action: sa.Row[Any], plan: Plan, share: Share, by: CausedBy
) -> tuple[Message, ...]:
    """Record missing operations and make pending those to repeat; return their messages."""
    subject, uid = action_ref(action), action.action_uid
    of_it = {"backfill_id": by.backfill_id}
    rows = [
        operation_row(subject, plan, operation_id(uid, at), at, by) | of_it for at in share.record
    ]
    new = record_new(connection, rows)
    first = [Message(row["id"], 1, row["task"], row["queue"]) for row in rows if row["id"] in new]
    repeated = [again(connection, action, plan, row, by) for row in share.repeat]
    return (*first, *(message for message in repeated if message is not None))


@app.task(name=METATASK_SCHEDULE)
def metatask_schedule(backfill_id: str, attempt: int) -> str:
    """Process a backfill in that attempt; return the outcome."""
    outcome = run_turn(engine_of(os.getpid(), settings_in_use()), (UUID(backfill_id), attempt))
    logger.info(
        "backfill_turn",
        "backfill {backfill} attempt {attempt}: {outcome}",
        backfill_id,
        attempt,
        outcome,
    )
    return outcome


def run_turn(engine: sa.Engine, turn: Turn) -> str:
    """Process a backfill; an unexpected error ends the backfill and is recorded in it."""
    try:
        return work_off(engine, turn)
    except DATABASE_AWAY as error:
        # The sweep asks again.
        return f"database unavailable: {reason_of(error)}"
    except Exception as error:
        logger.exception("backfill_failed", "backfill {backfill} failed", turn[0])
        with engine.begin() as connection:
            backfills.finish(connection, turn[0], "failed", text_of(error))
        return "failed"
