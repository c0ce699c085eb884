"""The task metatask_schedule: record a backfill in one transaction, and send what it recorded.

A worker for the queue `default` loads this module by name. If the worker dies before it commits,
nothing was recorded, and the sweep asks another worker; after it, the sweep sends the operations.
"""

import os
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from broker.app import app
from broker.in_use import settings_in_use
from broker.sending import send_reserved
from minutebook.error_text import text_of
from models.action.plan import Plan
from models.errors import Refused
from models.fingerprint import operation_id
from models.operation import RETRIABLE, CausedBy, by_backfill
from models.store.actions import cursors
from models.store.operations import backfills, put_back
from models.store.operations.record import record_new
from models.store.operations.reserve import Message
from models.worker_kinds import METATASK_SCHEDULE
from runtime.database import DATABASE_AWAY, reason_of
from runtime.logs.events import EventLog
from scheduler.changes.revisions import action_ref
from scheduler.on_demand.backfill import fillable, share_of
from scheduler.on_demand.backfill_range import SECOND, BackfillRequest, Mode, Share
from scheduler.on_demand.restart import FROM_THE_START
from scheduler.record import operation_row, work_columns
from scheduler.tz_release import OtherRelease, hold_release
from tasks.engines import engine_of

logger = EventLog("minutebook.backfill")


def record(connection: sa.Connection, id: UUID) -> tuple[str, Sequence[Message]]:
    """Record a backfill and its end in the caller's transaction.

    Return the outcome, and the messages to send.
    """
    row = backfills.hold(connection, id)
    if row is None:
        return "not active", ()
    try:
        hold_release(connection)
    except OtherRelease as error:
        # It stays active: the sweep asks a worker of the daemon's release.
        return str(error), ()
    action = cursors.lock(connection, row.action_uid)
    wanted = BackfillRequest(row.action_uid, row.since + SECOND, row.until, Mode(row.mode))
    try:
        plan, occurrences = fillable(connection, action, wanted)
    except (Refused, ValueError) as error:
        backfills.finish(connection, id, "failed", error=str(error))
        return "failed", ()
    share = share_of(connection, wanted, occurrences)
    messages = _run(connection, action, plan, share, by_backfill(id, row.actor))
    backfills.finish(connection, id, "done", **share.counts)
    return "done", messages


def _run(
    connection: sa.Connection, action: sa.Row[Any], plan: Plan, share: Share, by: CausedBy
) -> Sequence[Message]:
    """Record missing operations and make pending those to repeat; return their messages."""
    subject, uid = action_ref(action), action.action_uid
    of_it = {"backfill_id": by.backfill_id}
    rows = [
        operation_row(subject, plan, operation_id(uid, at), at, by) | of_it for at in share.record
    ]
    new = record_new(connection, rows)
    first = [Message(row["id"], 1, row["task"], row["queue"]) for row in rows if row["id"] in new]
    becomes = work_columns(subject, plan, by) | FROM_THE_START | of_it
    return [*first, *put_back.requeue(connection, share.repeat, RETRIABLE, becomes)]


# Every message of ours has an attempt; a backfill has one.
@app.task(name=METATASK_SCHEDULE)
def metatask_schedule(backfill_id: str, _attempt: int) -> str:
    """Record a backfill and send its operations; return the outcome."""
    outcome = process(engine_of(os.getpid(), settings_in_use()), UUID(backfill_id))
    logger.info("backfill_processed", "backfill {backfill}: {outcome}", backfill_id, outcome)
    return outcome


def process(engine: sa.Engine, id: UUID) -> str:
    """Record a backfill and send its operations; an unexpected error ends it and is kept in it."""
    try:
        with engine.begin() as connection:
            outcome, messages = record(connection, id)
        send_reserved(engine, messages)
    except DATABASE_AWAY as error:
        # The sweep asks again.
        return f"database unavailable: {reason_of(error)}"
    except Exception as error:
        logger.exception("backfill_failed", "backfill {backfill} failed", id)
        with engine.begin() as connection:
            backfills.finish(connection, id, "failed", error=text_of(error))
        return "failed"
    return outcome
