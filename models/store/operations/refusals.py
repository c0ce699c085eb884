"""End operations before their start: skipped, dropped, cancelled, or failed before."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

import sqlalchemy as sa

from models.errors import LeaseLost
from models.operation import UNSTARTED, AttemptKey, Cause, OperationState
from models.sql import in_many
from models.store import notices
from models.store.conditions import IS_UNSTARTED
from models.store.operations import NO_OTHER_ATTEMPT, NOT_BEING_SENT
from models.store.operations.end import EndResult, Outcome, end, release_waiting
from models.store.operations.transitions import fenced, move
from models.tables import operations
from runtime.sections import AlertSettings


def skip(
    connection: sa.Connection,
    id: UUID,
    attempt: int,
    reason: str,
    state: OperationState = OperationState.SKIPPED,
) -> EndResult | None:
    """Skip an unstarted attempt, or drop it; None if it has moved."""
    return _end(connection, state, reason, fenced(id, attempt))


def cancel(connection: sa.Connection, id: UUID, reason: str) -> EndResult | None:
    """Cancel an unstarted operation, waiting or not; None if it has started or is being sent."""
    return _end(connection, OperationState.CANCELLED, reason, operations.c.id == id, NOT_BEING_SENT)


def _end(
    connection: sa.Connection,
    state: OperationState,
    reason: str,
    *where: sa.ColumnElement[bool],
) -> EndResult | None:
    """End one operation and release what waits for it; None if it has moved.

    It never ran: no event, counter or alert comes of its end.
    """
    ended = move(state, *where, reason=reason).returning(operations.c.id)
    moved = connection.execute(ended).scalar_one_or_none()
    return None if moved is None else EndResult(state, release_waiting(connection, moved))


def fail(
    connection: sa.Connection,
    its: tuple[UUID, int],
    reason: str,
    error: str | None,
    alerts: AlertSettings,
) -> EndResult | None:
    """End an unstarted operation with a failed attempt as failed; None if it has moved.

    It counts and notifies as the end of its last attempt.
    """
    both = f"{NO_OTHER_ATTEMPT}{reason}"
    ending = Outcome(OperationState.FAILED, error, both, since=UNSTARTED)
    with suppress(LeaseLost):
        return end(connection, AttemptKey(*its), ending, alerts=alerts)
    return None


def end_deleted(
    connection: sa.Connection, uids: Sequence[UUID], reason: str, alerts: AlertSettings
) -> Counter[UUID]:
    """Cancel the unstarted operations of deleted actions; return how many of each.

    One with a failed attempt has failed; the next tick sends its notices.
    """
    which = (in_many(connection, operations.c.action_uid, uids), IS_UNSTARTED, NOT_BEING_SENT)
    columns = (operations.c.id, operations.c.attempt, operations.c.error, operations.c.action_uid)
    failed = sa.select(*columns).where(*which, operations.c.failures > 0)
    count: Counter[UUID] = Counter()
    for id, attempt, error, uid in connection.execute(failed.order_by(operations.c.id)).all():
        ended = fail(connection, (id, attempt), reason, error, alerts)
        if ended is not None:
            notices.send_soon(connection, ended.owed)
            count[uid] += 1
    cancelled = move(OperationState.CANCELLED, *which, reason=reason)
    moved = cancelled.returning(operations.c.action_uid)
    return count + Counter(connection.execute(moved).scalars())


def cancel_backfill(connection: sa.Connection, uid: UUID, id: UUID, reason: str) -> int:
    """Cancel an action's unstarted operations of a backfill; return how many.

    One that a person retries is no longer the backfill's to cancel.
    """
    its_own = (operations.c.backfill_id == id, operations.c.cause == Cause.BACKFILL)
    which = (operations.c.action_uid == uid, *its_own, IS_UNSTARTED, NOT_BEING_SENT)
    cancelled = move(OperationState.CANCELLED, *which, reason=reason)
    return connection.execute(cancelled).rowcount
