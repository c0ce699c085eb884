"""Estimate an operation's end by the durations of its action's last successes of its run type."""

from collections.abc import Sequence
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
# Longer than usual is what takes so many times as long as nine out of ten.
PATIENCE = 1.25

_recent = (
    sa.select(
        operations.c.state,
        operations.c.run_type,
        operations.c.started_at,
        operations.c.finished_at,
    )
    .where(operations.c.action_uid == sa.bindparam("its_action"))
    .order_by(operations.c.occurrence_at.desc())
    .limit(MOST_SEEN)
    .subquery("recent")
)
_STARTED = sa.select(operations.c.action_uid, operations.c.started_at, operations.c.run_type).where(
    operations.c.id == sa.bindparam("its_id")
)
_DURATIONS = (
    sa.select(_recent.c.started_at, _recent.c.finished_at)
    .where(_recent.c.state == OperationState.SUCCESS, _recent.c.finished_at.is_not(None))
    .where(_recent.c.started_at.is_not(None))
    .where(_recent.c.run_type.is_not_distinct_from(sa.bindparam("its_type", type_=sa.Text)))
    .limit(MOST_KNOWN)
)
_WRITE = sa.update(operations).where(ATTEMPT, IS_STILL_RUNNING)


@dataclass(frozen=True, slots=True)
class Eta:
    """When a running operation should end: at the earliest, probably, and usually at the latest."""

    earliest: datetime
    at: datetime
    latest: datetime


@dataclass(frozen=True, slots=True)
class Left:
    """When an operation should end, in how many seconds; None: unknown, or longer than usual."""

    eta: datetime | None = None
    eta_s: float | None = None
    eta_earliest_s: float | None = None
    eta_latest_s: float | None = None
    is_longer_than_usual: bool = False


def write_estimate(connection: sa.Connection, key: AttemptKey, expected: timedelta | None) -> None:
    """Write when a running attempt should end, if that is known; `expected`: of a first run."""
    found = estimate(connection, key.id, expected)
    if found is None:
        return
    values = {
        "eta_earliest_at": found.earliest,
        "eta_at": found.at,
        "eta_latest_at": found.latest,
    }
    connection.execute(_WRITE, {**fence(key), **values})


def estimate(
    connection: sa.Connection, operation_id: UUID, expected: timedelta | None = None
) -> Eta | None:
    """Return when a running operation should end; None if nothing is known.

    Without an earlier success of its run type it should take as long as `expected`.
    """
    row = connection.execute(_STARTED, {"its_id": operation_id}).one_or_none()
    if row is None or row.started_at is None:
        return None
    asked = {"its_action": row.action_uid, "its_type": row.run_type}
    durations = [
        one.finished_at - one.started_at
        for one in connection.execute(_DURATIONS, asked)
        if one.finished_at is not None and one.started_at is not None  # both can be read
    ]
    if not durations and expected is not None:
        durations = [expected]
    return eta_of(row.started_at, durations)


def eta_of(started_at: datetime, durations: Sequence[timedelta]) -> Eta | None:
    """Return the expected end; None without durations, which are of successes, newest first.

    The median, and the range of nine out of ten, ignore one that waited for a slow source.
    """
    known = sorted(one.total_seconds() for one in durations[:MOST_KNOWN])
    if not known:
        return None
    tenth = len(known) // MOST_KNOWN
    ends = (known[tenth], median(known), known[-1 - tenth] * PATIENCE)
    return Eta(*(started_at + timedelta(seconds=one) for one in ends))


def left_of(eta: Eta | None, now: datetime) -> Left:
    """Return how long an operation still takes: past the probable end, until the latest one."""
    if eta is None:
        return Left()
    if now >= eta.latest:
        return Left(is_longer_than_usual=True)
    probable = eta.at if now < eta.at else eta.latest
    return Left(
        probable,
        eta_s=_seconds(probable - now),
        eta_earliest_s=_seconds(eta.earliest - now),
        eta_latest_s=_seconds(eta.latest - now),
    )


def _seconds(span: timedelta) -> float:
    # Never 0 while it runs.
    return max(0.001, round(span.total_seconds(), 3))
