"""What is old enough to go. Each function deletes one batch and returns how many went."""

from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from models.operation import ENDED
from models.sql import database_now, stands_in
from models.tables import (
    action_cursor,
    actions,
    attempts,
    backfills,
    deliveries,
    missed_spans,
    notices,
    operation_logs,
    operations,
    ticks,
)


def prune_operations(
    connection: sa.Connection, small_app_id: int, age: timedelta, limit: int
) -> int:
    """Delete ended operations older than `age`, with attempts, log lines and deliveries.

    One that a tick could decide again stays: it lies after its action's watermark while the action
    is active, or is about a subject (events have no watermark, their ids prevent a second run).
    Nor does one go in the range of an active backfill, which would take it for missing.
    """
    ended_at = sa.func.coalesce(operations.c.finished_at, operations.c.recorded_at)
    decided = sa.or_(
        operations.c.occurrence_at <= action_cursor.c.watermark,
        action_cursor.c.watermark.is_(None),
        actions.c.active.is_(False),
    )
    is_being_filled = sa.exists().where(
        backfills.c.action_uid == operations.c.action_uid,
        stands_in(backfills.c.state, {"active"}),
        backfills.c.since < operations.c.occurrence_at,
        backfills.c.until >= operations.c.occurrence_at,
    )
    old = (
        sa.select(operations.c.id)
        .join(actions, actions.c.uid == operations.c.action_uid)
        .outerjoin(action_cursor, action_cursor.c.action_uid == operations.c.action_uid)
        .where(
            operations.c.small_app_id == small_app_id,
            operations.c.state.in_([state.value for state in ENDED]),
            # Every operation ends after it was recorded: the index finds the old ones.
            operations.c.recorded_at < database_now(-age),
            ended_at < database_now(-age),
            sa.not_(is_being_filled),
            sa.or_(
                actions.c.deleted_at.is_not(None), sa.and_(operations.c.subject.is_(None), decided)
            ),
        )
        .limit(limit)
    )
    ids = connection.execute(old).scalars().all()
    for table in (deliveries, attempts, operation_logs):
        connection.execute(sa.delete(table).where(table.c.operation_id.in_(ids)))
    connection.execute(sa.delete(operations).where(operations.c.id.in_(ids)))
    return len(ids)


def prune_missed_spans(
    connection: sa.Connection, small_app_id: int, age: timedelta, limit: int
) -> int:
    """Delete missed spans that were recorded more than `age` ago."""
    old = (
        sa.select(missed_spans.c.id)
        .join(actions, actions.c.uid == missed_spans.c.action_uid)
        .where(
            actions.c.small_app_id == small_app_id,
            missed_spans.c.recorded_at < database_now(-age),
        )
        .limit(limit)
    )
    return _delete(connection, missed_spans, old)


def prune_backfills(
    connection: sa.Connection, small_app_id: int, age: timedelta, limit: int
) -> int:
    """Delete backfills that ended more than `age` ago."""
    return _delete(connection, backfills, _ended(backfills, small_app_id, age).limit(limit))


def prune_notices(connection: sa.Connection, small_app_id: int, age: timedelta, limit: int) -> int:
    """Delete notices that were done, or given up, more than `age` ago."""
    return _delete(connection, notices, _ended(notices, small_app_id, age).limit(limit))


def _ended(table: sa.Table, small_app_id: int, age: timedelta) -> sa.Select[Any]:
    its = table.c.small_app_id == small_app_id
    # Who has not ended has no instant here.
    return sa.select(table.c.id).where(its, table.c.finished_at < database_now(-age))


def prune_ticks(connection: sa.Connection, age: timedelta, limit: int) -> int:
    """Delete tick reports older than `age`, of the whole installation."""
    old = sa.select(ticks.c.id).where(ticks.c.finished_at < database_now(-age)).limit(limit)
    return _delete(connection, ticks, old)


def _delete(connection: sa.Connection, table: sa.Table, chosen: sa.Select[Any]) -> int:
    ids = connection.execute(chosen).scalars().all()
    if ids:
        connection.execute(sa.delete(table).where(table.c.id.in_(ids)))
    return len(ids)
