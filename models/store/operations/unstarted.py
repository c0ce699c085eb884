"""End operations before their start: skipped, dropped, overtaken, cancelled."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.errors import LeaseLost
from models.many_rows import Change, Columns, read_each, update_each
from models.operation import UNSTARTED, AttemptKey, Cause, OperationState
from models.sql import is_among, is_still, stands_in
from models.store import notices
from models.store.conditions import IS_UNSTARTED
from models.store.operations import MORE_WAITED, OVERTAKEN, is_being_sent, is_requested
from models.store.operations.end import Ended, Ending, end, release_waiting
from models.store.operations.transitions import becomes, fenced, move
from models.tables import operations
from models.values import format_instant
from runtime.sections import AlertSettings

_NOT_SENT = sa.not_(is_being_sent(operations.c))


def skip(connection: sa.Connection, id: UUID, attempt: int, reason: str) -> Ended | None:
    """Skip an unstarted attempt for that reason; None if it has moved."""
    return _end(connection, OperationState.SKIPPED, reason, fenced(id, attempt))


def drop(connection: sa.Connection, id: UUID, attempt: int) -> Ended | None:
    """Drop an unstarted attempt that comes too soon; None if it has moved."""
    return _end(connection, OperationState.DROPPED, "tolerance", fenced(id, attempt))


def cancel(connection: sa.Connection, id: UUID, reason: str) -> Ended | None:
    """Cancel an unstarted operation, waiting or not; None if it has started or is being sent."""
    return _end(connection, OperationState.CANCELLED, reason, operations.c.id == id, _NOT_SENT)


def _end(
    connection: sa.Connection,
    state: OperationState,
    reason: str,
    *where: sa.ColumnElement[bool],
) -> Ended | None:
    """End one operation and release what waits for it; None if it has moved.

    It never ran: no event, counter or alert comes of its end.
    """
    ended = move(state, *where, reason=reason).returning(operations.c.id)
    moved = connection.execute(ended).scalar_one_or_none()
    return None if moved is None else Ended(state, release_waiting(connection, moved))


def fail(
    connection: sa.Connection,
    its: tuple[UUID, int],
    reason: str,
    error: str | None,
    alerts: AlertSettings,
) -> Ended:
    """End an unstarted operation with a failed attempt as failed; raises LeaseLost if it moved.

    It counts and notifies as the end of its last attempt.
    """
    both = f"no other attempt: {reason}"
    ending = Ending(OperationState.FAILED, error, both, since=UNSTARTED)
    return end(connection, AttemptKey(*its), ending, alerts=alerts)


def overtake(connection: sa.Connection, newest: Sequence[tuple[UUID, datetime]]) -> int:
    """Skip unstarted scheduled operations before the newest, given as uid and occurrence.

    They are found first, and then locked in the order of their ids: by an update of what is found,
    one tick and another one that marks what it sent would wait for each other.
    """
    rows = [{"its_action": uid, "its_newest": at} for uid, at in newest]
    names = {"its_action": "action_uid", "its_newest": "occurrence_at"}
    found = read_each(connection, operations, rows, names, _before_newest, is_ordered=False)
    if not found:
        return 0
    by = {uid: f"{OVERTAKEN} by {format_instant(at)}" for uid, at in newest}
    given = [
        {"its_id": row.id, "its_reason": by[row.action_uid]} for row in found if row.id is not None
    ]
    names = {"its_id": "id", "its_reason": "reason"}
    return update_each(connection, operations, given, names, _OVERTAKEN)


def _before_newest(given: Columns) -> sa.Select[Any]:
    query = sa.select(operations.c.id, operations.c.action_uid).where(
        operations.c.action_uid == given["its_action"],
        operations.c.occurrence_at < given["its_newest"],
        stands_in(operations.c.state, UNSTARTED),
        *_may_be_overtaken(operations.c),
    )
    # With an offset, PostgreSQL looks up each action by itself; see `update_each`.
    return query.offset(0)


def _may_be_overtaken(row: Columns) -> list[sa.ColumnElement[bool]]:
    return [
        # An operation that has begun (a retry, a lost one) is not overtaken.
        row["first_started_at"].is_(None),
        sa.not_(is_requested(row)),
        sa.not_(is_being_sent(row)),
    ]


# The same object each time, so that its statement is made once.
_OVERTAKEN = Change(
    lambda row, given: [
        row["id"] == given["its_id"],
        is_still(row["state"], UNSTARTED),
        *_may_be_overtaken(row),
    ],
    lambda given: becomes(OperationState.SKIPPED, UNSTARTED, reason=given["its_reason"]),
)


def counts(connection: sa.Connection, uids: Collection[UUID]) -> dict[UUID, int]:
    """Return how many unstarted operations actions have, those with more than one."""
    if not uids:
        return {}
    query = (
        sa.select(operations.c.action_uid, sa.func.count().label("times"))
        .where(is_among(connection, operations.c.action_uid, list(uids)), IS_UNSTARTED)
        .group_by(operations.c.action_uid)
        .having(sa.func.count() > 1)
    )
    return {row.action_uid: row.times for row in connection.execute(query)}


def keep_newest(connection: sa.Connection, uid: UUID, max_waiting: int) -> int:
    """Skip an action's oldest never-started operations, except the newest `max_waiting` + 1.

    One of them may be the next to run. Requested ones do not count.
    """
    never_started = _newest_first(uid).where(operations.c.first_started_at.is_(None), _NOT_SENT)
    surplus = never_started.offset(max_waiting + 1)
    skipped = move(OperationState.SKIPPED, *_among(surplus), reason=_waited(max_waiting))
    return connection.execute(skipped).rowcount


def keep_newest_waiting(
    connection: sa.Connection, uid: UUID, max_waiting: int, alerts: AlertSettings
) -> None:
    """Skip an action's oldest waiting operations, except requested ones, beyond `max_waiting`."""
    waiting = _newest_first(uid).where(operations.c.waiting_for.is_not(None))
    surplus, reason = _among(waiting.offset(max_waiting)), _waited(max_waiting)
    _end_all(connection, OperationState.SKIPPED, reason, alerts, *surplus)


def _newest_first(uid: UUID) -> sa.Select[Any]:
    """Return an action's unstarted scheduled operations, newest first."""
    return (
        sa.select(operations.c.id)
        .where(operations.c.action_uid == uid, IS_UNSTARTED)
        .where(sa.not_(is_requested(operations.c)))
        .order_by(operations.c.occurrence_at.desc(), operations.c.id)
    )


def _among(query: sa.Select[Any]) -> tuple[sa.ColumnElement[bool], ...]:
    # Not a list of ids: PostgreSQL takes no more than 65,535 parameters.
    return operations.c.id.in_(query.scalar_subquery()), _NOT_SENT


def _waited(most: int) -> str:
    return f"{MORE_WAITED}{most} waited"


def end_deleted(
    connection: sa.Connection, uids: Sequence[UUID], reason: str, alerts: AlertSettings
) -> int:
    """Cancel the unstarted operations of deleted actions; return how many."""
    its_own = (is_among(connection, operations.c.action_uid, uids), IS_UNSTARTED, _NOT_SENT)
    return _end_all(connection, OperationState.CANCELLED, reason, alerts, *its_own)


def _end_all(
    connection: sa.Connection,
    state: OperationState,
    reason: str,
    alerts: AlertSettings,
    *which: sa.ColumnElement[bool],
) -> int:
    """End unstarted operations in that state; return how many.

    One with a failed attempt has failed; the next tick sends its notices.
    """
    columns = (operations.c.id, operations.c.attempt, operations.c.error)
    failed = sa.select(*columns).where(*which, operations.c.failures > 0)
    count = 0
    for id, attempt, error in connection.execute(failed.order_by(operations.c.id)).all():
        with suppress(LeaseLost):
            ended = fail(connection, (id, attempt), reason, error, alerts)
            notices.send_soon(connection, ended.owed)
            count += 1
    return count + connection.execute(move(state, *which, reason=reason)).rowcount


def cancel_backfill(connection: sa.Connection, uid: UUID, id: UUID, reason: str) -> int:
    """Cancel an action's unstarted operations of a backfill; return how many.

    One that a person retries is no longer the backfill's to cancel.
    """
    its_own = (operations.c.backfill_id == id, operations.c.cause == Cause.BACKFILL)
    which = (operations.c.action_uid == uid, *its_own, IS_UNSTARTED, _NOT_SENT)
    cancelled = move(OperationState.CANCELLED, *which, reason=reason)
    return connection.execute(cancelled).rowcount
