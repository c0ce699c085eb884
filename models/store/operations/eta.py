"""Estimate an operation's end by its action's last successes that rewrote the same."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from uuid import UUID

import sqlalchemy as sa

from models.operation import AttemptKey, OperationState
from models.store.operations.heartbeat import ATTEMPT, IS_STILL_RUNNING, fence
from models.tables import operations

# How many operations are searched for successes; of more successes, only the newest count.
MOST_SEEN = 100
MOST_KNOWN = 10

_of = operations.c
_recent = (
    sa.select(_of.state, _of.rewrites, _of.started_at, _of.finished_at)
    .where(_of.action_uid == sa.bindparam("its_action"))
    .order_by(_of.occurrence_at.desc())
    .limit(MOST_SEEN)
    .subquery("recent")
)
_ITS_START = sa.select(_of.action_uid, _of.started_at, _of.rewrites).where(
    _of.id == sa.bindparam("its_id")
)
_SAME = (
    sa.select(_recent.c.started_at, _recent.c.finished_at)
    .where(_recent.c.state == OperationState.SUCCESS)
    .where(_recent.c.started_at.is_not(None), _recent.c.finished_at.is_not(None))
    .where(_recent.c.rewrites.is_not_distinct_from(sa.bindparam("its", type_=sa.Text)))
    .limit(MOST_KNOWN)
)
_WRITE = sa.update(operations).where(ATTEMPT, IS_STILL_RUNNING)


@dataclass(frozen=True, slots=True)
class Left:
    """When an operation should end, in how many seconds; None: unknown, or past that instant."""

    eta: datetime | None = None
    eta_s: float | None = None
    is_longer_than_usual: bool = False


def write_estimate(connection: sa.Connection, key: AttemptKey, expected: timedelta | None) -> None:
    """Write when a running attempt should end, if that is known; `expected`: of a first run."""
    eta_at = estimate(connection, key.id, expected)
    if eta_at is not None:
        connection.execute(_WRITE, {**fence(key), "eta_at": eta_at})


def estimate(
    connection: sa.Connection, operation_id: UUID, expected: timedelta | None = None
) -> datetime | None:
    """Return when a running operation should end; None if nothing is known.

    That is after the median of what the last ten took: it ignores one that waited for a slow
    source. Without an earlier success of that kind it should take as long as `expected`.
    """
    row = connection.execute(_ITS_START, {"its_id": operation_id}).one_or_none()
    if row is None or row.started_at is None:
        return None
    same = connection.execute(_SAME, {"its_action": row.action_uid, "its": row.rewrites})
    durations = [
        one.finished_at - one.started_at
        for one in same
        if one.finished_at is not None and one.started_at is not None  # both can be read
    ]
    usual = median(durations) if durations else expected
    return None if usual is None else row.started_at + usual


def left_of(started_at: datetime | None, eta_at: datetime | None, now: datetime) -> Left:
    """Return how long an operation still takes; it is long if it takes twice as long as usual."""
    if started_at is None or eta_at is None:
        return Left()
    if now >= eta_at:
        return Left(is_longer_than_usual=now - eta_at >= eta_at - started_at)
    # Never 0 while it runs.
    return Left(eta_at, max(0.001, round((eta_at - now).total_seconds(), 3)))
