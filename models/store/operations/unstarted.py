"""End operations before their start: skipped, dropped, overtaken, cancelled."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.bulk_sql import given, locked
from models.errors import LeaseLost
from models.operation import UNSTARTED, AttemptKey, Cause, OperationState
from models.sql import is_among, is_still
from models.store import notices
from models.store.conditions import IS_UNSTARTED
from models.store.operations import IS_BEING_SENT, MORE_WAITED, OVERTAKEN, is_requested
from models.store.operations.end import Ended, Ending, end, release_waiting
from models.store.operations.transitions import becomes, fenced, move
from models.tables import operations
from models.values import format_instant
from runtime.sections import AlertSettings

_NOT_SENT = sa.not_(IS_BEING_SENT)


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
    by = dict(newest)
    found = _before_newest(connection, by) if by else []
    if not found:
        return 0
    reasons = {uid: f"{OVERTAKEN} by {format_instant(at)}" for uid, at in by.items()}
    rows = [
        {"id": row.id, "reason": reasons[row.action_uid]} for row in found if row.id is not None
    ]
    # Of a statement that begins with a CTE, SQLite's driver counts no rows.
    return len(connection.execute(_OVERTAKEN, {"given": rows}).all())


_MAY_BE_OVERTAKEN = (
    # An operation that has begun (a retry, a lost one) is not overtaken.
    operations.c.first_started_at.is_(None),
    sa.not_(is_requested(operations.c)),
    _NOT_SENT,
)


def _before_newest(connection: sa.Connection, newest: Mapping[UUID, datetime]) -> list[sa.Row[Any]]:
    its = ("id", "action_uid", "occurrence_at")
    query = sa.select(*(operations.c[name] for name in its)).where(
        is_among(connection, operations.c.action_uid, newest),
        operations.c.occurrence_at < max(newest.values()),
        IS_UNSTARTED,
        *_MAY_BE_OVERTAKEN,
    )
    rows = connection.execute(query)
    return [row for row in rows if row.occurrence_at < newest[row.action_uid]]


_REASONS = given(operations, "id", "reason")
_TO_SKIP = locked(operations, _REASONS, is_still(operations.c.state, UNSTARTED), *_MAY_BE_OVERTAKEN)
_OVERTAKEN = (
    sa.update(operations)
    .where(operations.c.id == _TO_SKIP.c.id)
    .values(becomes(OperationState.SKIPPED, UNSTARTED, reason=_TO_SKIP.c.reason))
    .returning(operations.c.id)
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
