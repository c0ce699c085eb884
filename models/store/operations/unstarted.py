"""End operations before their start: skipped, dropped, overtaken, cancelled."""

from collections.abc import Collection, Mapping, Sequence
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
from models.store.conditions import IS_RUNNING, IS_UNSTARTED
from models.store.operations import MORE_WAITED, OVERTAKEN, is_being_sent, is_requested
from models.store.operations.finish import Ended, Ending, end, release_waiting
from models.store.operations.move import becomes, fenced, move
from models.tables import actions, operations
from models.values import format_instant, instant_or_dash
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


def skip_unwanted(connection: sa.Connection, id: UUID, attempt: int) -> bool:
    """Skip an unstarted attempt whose action is paused or deleted; False if it has moved.

    Operations that wait for it are skipped as well. One of them that has failed before is left to
    the sweep, by which it fails.
    """
    skipped = _skip_unwanted(connection, fenced(id, attempt))
    is_skipped = bool(skipped)
    while skipped:
        behind = operations.c.waiting_for.in_(skipped) & (operations.c.failures == 0)
        skipped = _skip_unwanted(connection, behind)
    return is_skipped


def _skip_unwanted(connection: sa.Connection, which: sa.ColumnElement[bool]) -> Sequence[UUID]:
    is_deleted = sa.exists().where(
        actions.c.uid == operations.c.action_uid, actions.c.deleted_at.is_not(None)
    )
    reason = sa.case((is_deleted, "the action was deleted"), else_="paused")
    skipped = move(OperationState.SKIPPED, which, reason=reason).returning(operations.c.id)
    return connection.execute(skipped).scalars().all()


def overtake(connection: sa.Connection, newest: Sequence[tuple[UUID, datetime]]) -> int:
    """Skip unstarted scheduled operations before the newest, given as uid and occurrence.

    The reason names the newest, and what has been running the longest in their queue.
    They are found first, and then locked in the order of their ids: by an update of what is found,
    one tick and another one that marks what it sent would wait for each other.
    """
    rows = [{"its_action": uid, "its_newest": at} for uid, at in newest]
    names = {"its_action": "action_uid", "its_newest": "occurrence_at"}
    found = read_each(connection, operations, rows, names, _before_newest, is_ordered=False)
    if not found:
        return 0
    by, busy = dict(newest), _longest_running(connection)
    given = [
        {"its_id": row.id, "its_reason": _overtaken(row, by[row.action_uid], busy)}
        for row in found
        if row.id is not None
    ]
    names = {"its_id": "id", "its_reason": "reason"}
    return update_each(connection, operations, given, names, _OVERTAKEN)


Busy = Mapping[tuple[int, str], sa.RowMapping]


def _overtaken(row: sa.Row[Any], newest: datetime, busy: Busy) -> str:
    reason = f"{OVERTAKEN} by {format_instant(newest)}"
    running = busy.get((row.small_app_id, row.queue))
    if running is None:
        return reason
    since, where = instant_or_dash(running["started_at"]), f"queue {row.queue}"
    held = f'"{running["name"]}" has been running in {where} since {since}'
    return f"{reason}: {held} ({running['id']}, on {running['worker']})"


def _longest_running(connection: sa.Connection) -> Busy:
    """Return by small app and queue what has been running the longest: as many as workers run."""
    running = (
        sa.select(
            operations.c.id,
            operations.c.small_app_id,
            operations.c.queue,
            operations.c.started_at,
            operations.c.worker,
            actions.c.name,
        )
        .join(actions, actions.c.uid == operations.c.action_uid)
        .where(IS_RUNNING, operations.c.heartbeat_at.is_not(None))
        .order_by(operations.c.started_at.desc())
    )
    rows = connection.execute(running).mappings()
    return {(row["small_app_id"], row["queue"]): row for row in rows}


def _before_newest(given: Columns) -> sa.Select[Any]:
    its = (operations.c.id, operations.c.action_uid, operations.c.small_app_id, operations.c.queue)
    query = sa.select(*its).where(
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
    never_started = _surplus(uid).where(operations.c.first_started_at.is_(None))
    never_started = never_started.where(_NOT_SENT)
    return _skip_surplus(connection, never_started.offset(max_waiting + 1), max_waiting)


def keep_newest_waiting(connection: sa.Connection, uid: UUID, max_waiting: int) -> int:
    """Skip an action's oldest waiting operations, except requested ones, beyond `max_waiting`."""
    waiting = _surplus(uid).where(operations.c.waiting_for.is_not(None))
    return _skip_surplus(connection, waiting.offset(max_waiting), max_waiting)


def failed_surplus(connection: sa.Connection, uid: UUID, max_waiting: int) -> Sequence[Any]:
    """Return id, attempt and error of what `keep_newest_waiting` would skip after a failure."""
    waiting = _surplus(uid).where(operations.c.waiting_for.is_not(None)).offset(max_waiting)
    return _failed_before(connection, operations.c.id.in_(waiting.scalar_subquery()))


def failed_of(connection: sa.Connection, uids: Sequence[UUID]) -> Sequence[Any]:
    """Return id, attempt and error of the actions' unstarted operations with a failed attempt."""
    its_own = is_among(connection, operations.c.action_uid, uids)
    return _failed_before(connection, its_own & IS_UNSTARTED)


def _failed_before(connection: sa.Connection, which: sa.ColumnElement[bool]) -> Sequence[Any]:
    columns = (operations.c.id, operations.c.attempt, operations.c.error)
    query = sa.select(*columns).where(which, operations.c.failures > 0, _NOT_SENT)
    return connection.execute(query.order_by(operations.c.id)).all()


def _surplus(uid: UUID) -> sa.Select[Any]:
    """Return an action's unstarted scheduled operations, newest first."""
    return (
        sa.select(operations.c.id)
        .where(operations.c.action_uid == uid, IS_UNSTARTED)
        .where(sa.not_(is_requested(operations.c)))
        .order_by(operations.c.occurrence_at.desc(), operations.c.id)
    )


def _skip_surplus(connection: sa.Connection, surplus: sa.Select[Any], max_waiting: int) -> int:
    reason = f"{MORE_WAITED}{max_waiting} waited"
    # Not a list of ids: PostgreSQL takes no more than 65,535 parameters.
    those = operations.c.id.in_(surplus.scalar_subquery())
    skipped = move(OperationState.SKIPPED, those, _NOT_SENT, reason=reason)
    return connection.execute(skipped).rowcount


def end_deleted(
    connection: sa.Connection, uids: Sequence[UUID], reason: str, alerts: AlertSettings
) -> int:
    """End the unstarted operations of deleted actions; return how many.

    They are cancelled; one with a failed attempt has failed.
    """
    failed = fail_each(connection, failed_of(connection, uids), reason, alerts)
    return failed + cancel_all(connection, uids, reason)


def fail_each(
    connection: sa.Connection, rows: Sequence[Any], reason: str, alerts: AlertSettings
) -> int:
    """Fail unstarted operations, given as id, attempt and error; the next tick sends the notices.

    Returns how many had not moved.
    """
    count = 0
    for row in rows:
        with suppress(LeaseLost):
            ended = fail(connection, (row.id, row.attempt), reason, row.error, alerts)
            notices.send_soon(connection, ended.owed)
            count += 1
    return count


def cancel_all(connection: sa.Connection, uids: Sequence[UUID], reason: str) -> int:
    """Cancel the unstarted operations of deleted actions; return how many."""
    its_own = is_among(connection, operations.c.action_uid, uids) & IS_UNSTARTED
    return _cancel(connection, its_own, reason)


def cancel_backfill(connection: sa.Connection, uid: UUID, id: UUID, reason: str) -> int:
    """Cancel an action's unstarted operations of a backfill; return how many.

    One that a person retries is no longer the backfill's to cancel.
    """
    its_own = (operations.c.backfill_id == id) & (operations.c.cause == Cause.BACKFILL)
    return _cancel(connection, (operations.c.action_uid == uid) & its_own & IS_UNSTARTED, reason)


def _cancel(connection: sa.Connection, which: sa.ColumnElement[bool], reason: str) -> int:
    """Cancel unstarted operations, except those being sent to another application."""
    cancelled = move(OperationState.CANCELLED, which, _NOT_SENT, reason=reason)
    return connection.execute(cancelled).rowcount
