"""Take back lost operations and release stranded ones."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import sound
from models.carriers import CELERY, carrier_of
from models.operation import ENDED, AttemptKey, OperationState, StepState
from models.sql import database_now
from models.store import notices
from models.store.conditions import IS_RUNNING, IS_UNSTARTED
from models.store.operations.end import PLAN, Ending, end, end_at_least, release_waiting
from models.store.operations.retry_policy import TriedRow, lost, lost_task
from models.tables import operations
from runtime.database import is_of_no_row
from runtime.sections import AlertSettings

_holder = operations.alias("holder")
# What operations wait for that has ended or is missing.
STRANDED = (
    sa.select(operations.c.waiting_for)
    .outerjoin(_holder, _holder.c.id == operations.c.waiting_for)
    .where(operations.c.waiting_for.is_not(None), IS_UNSTARTED)
    .where(_holder.c.id.is_(None) | _holder.c.state.in_(ENDED))
)


def release_stranded(connection: sa.Connection) -> int:
    """Release operations that wait for an ended or missing one; return how many."""
    ended = connection.execute(STRANDED.distinct()).scalars().all()
    return sum(len(release_waiting(connection, one)) for one in ended)


def take_back_lost(
    connection: sa.Connection,
    lease: timedelta,
    limit: int,
    alerts: AlertSettings,
) -> list[tuple[UUID, str]]:
    """Take back running operations without a heartbeat for `lease`; return id and new state."""
    # A heartbeat in the future comes from a clock that was ahead.
    stale = (operations.c.heartbeat_at < database_now(-lease)) | (
        operations.c.heartbeat_at > database_now(lease)
    )
    lost = (
        connection.execute(
            sa.select(operations, PLAN)
            .where(IS_RUNNING, stale)
            .where(operations.c.heartbeat_at.is_not(None))
            .order_by(operations.c.heartbeat_at)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        .mappings()
        .all()
    )
    return [(row["id"], _taken_back(connection, row, alerts)) for row in lost]


def _taken_back(
    connection: sa.Connection, row: sa.RowMapping, alerts: AlertSettings
) -> OperationState:
    """Take back an operation; if that fails, end it as broken, and let the others go on."""
    try:
        with connection.begin_nested():
            return _take_back(connection, row, alerts)
    except Exception as error:  # a broken row
        if is_of_no_row(error):
            raise
        text = f"it could not be taken back: {type(error).__name__}: {error}"
    broken = Ending(OperationState.FAILED, error=text, reason="broken")
    end_at_least(connection, row["id"], broken, lambda: _end(connection, row, broken, alerts))
    return broken.state


def _end(
    connection: sa.Connection, row: sa.RowMapping, ending: Ending, alerts: AlertSettings
) -> None:
    key = AttemptKey(row["id"], row["attempt"], row["secret"] or "")
    ended = end(connection, key, ending, alerts=alerts)
    notices.send_soon(connection, ended.owed)


def _take_back(
    connection: sa.Connection, row: sa.RowMapping, alerts: AlertSettings
) -> OperationState:
    running = (one for one in row["steps"] or [] if one.get("state") == StepState.RUNNING)
    step: dict[str, Any] = next(running, {})
    why, is_asked = f"worker {row['worker']} sent no heartbeat", bool(row["cancel_requested_at"])
    ending = lost(row["losses"], why, step.get("name"), step.get("repeatable", True), is_asked)
    if carrier_of(row["task"]) is CELERY:
        ending = lost_task(ending, TriedRow(sound(row["plan"]), row["failures"]))
    _end(connection, row, ending, alerts)
    return ending.state
