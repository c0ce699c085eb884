"""Estimate an operation's end by the durations of its action's last successes."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from statistics import median
from uuid import UUID

import sqlalchemy as sa

from models.operation import OperationState
from models.tables import operations

# How many operations are searched for successes.
MOST_SEEN = 100
# Fewer successes give no estimate; of more, only the newest count.
LEAST_KNOWN = 3
MOST_KNOWN = 10

_recent = (
    sa.select(operations.c.state, operations.c.started_at, operations.c.finished_at)
    .where(operations.c.action_uid == sa.bindparam("its_action"))
    .order_by(operations.c.occurrence_at.desc())
    .limit(MOST_SEEN)
    .subquery("recent")
)
_STARTED = sa.select(operations.c.action_uid, operations.c.started_at).where(
    operations.c.id == sa.bindparam("its_id")
)
_DURATIONS = (
    sa.select(_recent.c.started_at, _recent.c.finished_at)
    .where(_recent.c.state == OperationState.SUCCESS, _recent.c.finished_at.is_not(None))
    .where(_recent.c.started_at.is_not(None))
    .limit(MOST_KNOWN)
)


def estimate(connection: sa.Connection, operation_id: UUID) -> datetime | None:
    """Return the estimated end of a running operation; None if too little is known."""
    row = connection.execute(_STARTED, {"its_id": operation_id}).one_or_none()
    if row is None or row.started_at is None:
        return None
    spans = connection.execute(_DURATIONS, {"its_action": row.action_uid}).all()
    durations: list[timedelta] = [
        one.finished_at - one.started_at
        for one in spans
        if one.finished_at is not None and one.started_at is not None  # both can be read
    ]
    return eta_of(row.started_at, durations)


def eta_of(started_at: datetime, durations: Sequence[timedelta]) -> datetime | None:
    """Return the expected end; None before three earlier operations succeeded.

    `durations` are those of successful operations, newest first. The median ignores a single one
    that waited for a slow source.
    """
    known = [duration.total_seconds() for duration in durations[:MOST_KNOWN]]
    if len(known) < LEAST_KNOWN:
        return None
    return started_at + timedelta(seconds=median(known))
