"""Estimate an operation's end by its action's last successes that rewrote the same."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.operation import AttemptKey, OperationState
from models.sql import database_now
from models.store.conditions import IS_RUNNING
from models.store.operations.heartbeat import ATTEMPT, IS_STILL_RUNNING, fence
from models.store.scope import Scope
from models.tables import actions, operations

# How many operations are searched for successes; of more successes, only the newest count.
MOST_SEEN = 100
MOST_KNOWN = 10
# Of the longest running ones, how many are judged.
MOST_SLOW = 200
# How long a run may take before it is slow, if no earlier one shows how long it should.
WITHOUT_HISTORY = timedelta(hours=1)

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
_LONG = (
    sa.select(*(_of[name] for name in ("id", "action_uid", "small_app_id", "started_at", "eta_at")))
    .add_columns(actions.c.name, database_now().label("now"))
    .join(actions, actions.c.uid == _of.action_uid)
    .where(IS_RUNNING)
    .order_by(_of.started_at)
    .limit(MOST_SLOW)
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


@dataclass(frozen=True, slots=True)
class SlowRun:
    """A run that takes longer than usual; `usual` is None if no earlier one shows how long."""

    id: UUID
    action_uid: UUID
    action: str
    small_app_id: int
    started_at: datetime
    usual: timedelta | None


def slow_runs(connection: sa.Connection, scope: Scope, late: timedelta) -> list[SlowRun]:
    """Return the runs that take twice as long as usual, and longer by `late`; the oldest first.

    Without an earlier success it is an hour.
    """
    its_own = scope.has_unindexed(_of.small_app_id)
    query = _LONG.where(its_own, _of.started_at < database_now(-late))
    return [
        found
        for row in connection.execute(query)
        if (found := _slow(connection, row, late)) is not None
    ]


def _slow(connection: sa.Connection, row: sa.Row[Any], late: timedelta) -> SlowRun | None:
    # Only our own workers write it when a run starts.
    eta_at = row.eta_at or estimate(connection, row.id)
    usual = None if eta_at is None else eta_at - row.started_at
    limit = WITHOUT_HISTORY if usual is None else usual + max(usual, late)
    if row.now - row.started_at < limit:
        return None
    its = (row.id, row.action_uid, row.name, row.small_app_id, row.started_at)
    return SlowRun(*its, usual)


def left_of(started_at: datetime | None, eta_at: datetime | None, now: datetime) -> Left:
    """Return how long an operation still takes; it is long if it takes twice as long as usual."""
    if started_at is None or eta_at is None:
        return Left()
    if now >= eta_at:
        return Left(is_longer_than_usual=now - eta_at >= eta_at - started_at)
    # Never 0 while it runs.
    return Left(eta_at, max(0.001, round((eta_at - now).total_seconds(), 3)))
