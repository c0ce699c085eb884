"""What is old enough to go. Each function deletes one batch and returns how many went."""

from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from models.operation import ENDED
from models.sql import database_now
from models.tables import (
    action_cursor,
    actions,
    attempts,
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
    """
    ended_at = sa.func.coalesce(operations.c.finished_at, operations.c.recorded_at)
    decided = sa.or_(
        operations.c.occurrence_at <= action_cursor.c.watermark,
        action_cursor.c.watermark.is_(None),
        actions.c.active.is_(False),
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


def prune_notices(connection: sa.Connection, small_app_id: int, age: timedelta, limit: int) -> int:
    """Delete notices that were delivered, or given up, more than `age` ago."""
    old = (
        sa.select(notices.c.id)
        .where(notices.c.small_app_id == small_app_id)
        .where(notices.c.finished_at < database_now(-age))
        .limit(limit)
    )
    return _delete(connection, notices, old)


def prune_ticks(connection: sa.Connection, age: timedelta, limit: int) -> int:
    """Delete tick reports older than `age`, of the whole installation."""
    old = sa.select(ticks.c.id).where(ticks.c.finished_at < database_now(-age)).limit(limit)
    return _delete(connection, ticks, old)


def _delete(connection: sa.Connection, table: sa.Table, chosen: sa.Select[Any]) -> int:
    ids = connection.execute(chosen).scalars().all()
    if ids:
        connection.execute(sa.delete(table).where(table.c.id.in_(ids)))
    return len(ids)
