"""Write to a running operation, fenced by its attempt; no row changed means LeaseLost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.errors import LeaseLost
from models.operation import OperationState
from models.sql import database_now, is_still, upsert
from models.store.conditions import IS_RUNNING, IS_UNSTARTED, state_of
from models.tables import action_state, operation_logs, operations

MOST_LOG_LINES = 200


@dataclass(frozen=True, slots=True)
class Memory:
    """What is known of an action's (and subject's) earlier operations."""

    run_number: int
    last_success_at: datetime | None
    checkpoint: dict[str, Any]


_MEMORY = sa.select(
    action_state.c.run_number, action_state.c.last_success_at, action_state.c.checkpoint
).where(
    action_state.c.action_uid == sa.bindparam("its_action"),
    action_state.c.subject == sa.bindparam("its_subject"),
)


def memory(connection: sa.Connection, uid: UUID, subject: str | None) -> Memory:
    """Return an action's memory, empty before its first operation."""
    asked = {"its_action": uid, "its_subject": subject or ""}
    row = connection.execute(_MEMORY, asked).one_or_none()
    if row is None:
        return Memory(0, None, {})
    return Memory(row.run_number, row.last_success_at, dict(row.checkpoint or {}))


# How many of an action's newest operations that started are read, beside its state.
RECENT = 20


def last_starts(connection: sa.Connection, uid: UUID, id: UUID) -> list[datetime | None]:
    """Return starts of an action's operations but `id`, among them the last one.

    What has ended is in the action's state. That may be of a clock that was ahead: then those of
    the newest occurrences count.
    """
    started = sa.select(operations.c.first_started_at).where(
        operations.c.action_uid == uid,
        operations.c.id != id,
        operations.c.first_started_at.is_not(None),
    )
    queries = (
        sa.select(action_state.c.last_run_at).where(state_of(uid)),
        started.order_by(operations.c.occurrence_at.desc()).limit(RECENT),
        # What was asked for may be of an occurrence long ago.
        started.where(IS_RUNNING),
        started.where(IS_UNSTARTED),
    )
    return [at for query in queries for at in connection.execute(query).scalars()]


# The row of an attempt, and of a running one; `fence` returns their parameters.
ATTEMPT = sa.and_(
    operations.c.id == sa.bindparam("its_id"), operations.c.attempt == sa.bindparam("its_attempt")
)
IS_STILL_RUNNING = is_still(operations.c.state, {OperationState.RUNNING})
_FENCED = sa.and_(ATTEMPT, IS_STILL_RUNNING)
_BEAT = (
    sa.update(operations)
    .where(_FENCED)
    .values(heartbeat_at=database_now())
    .returning(operations.c.cancel_requested_at)
)


def fence(operation_id: UUID, attempt: int) -> dict[str, Any]:
    """Return the parameters that fence a statement by an attempt."""
    return {"its_id": operation_id, "its_attempt": attempt}


def lease_lost(operation_id: UUID, attempt: int) -> LeaseLost:
    """Return the error of a write that changed no row."""
    return LeaseLost(f"operation {operation_id} attempt {attempt} has moved meanwhile")


@dataclass(frozen=True, slots=True)
class Story:
    """An attempt's progress to store: columns, and log lines if there are new ones."""

    values: Mapping[str, Any]
    lines: Sequence[dict[str, Any]] | None = None


NO_NEWS = Story({})


def beat(
    connection: sa.Connection, operation_id: UUID, attempt: int, story: Story = NO_NEWS
) -> bool:
    """Renew the lease, and write progress, phase, message or steps, and the last log lines.

    Returns whether a cancel was requested. Raises LeaseLost.
    """
    given = {**fence(operation_id, attempt), **story.values}
    row = connection.execute(_BEAT, given).one_or_none()
    if row is None:
        raise lease_lost(operation_id, attempt)
    write_lines(connection, operation_id, story)
    return row.cancel_requested_at is not None


def write_lines(connection: sa.Connection, operation_id: UUID, story: Story) -> None:
    """Write the last log lines, if any."""
    if story.lines is not None:
        lines = list(story.lines)[-MOST_LOG_LINES:]
        upsert(connection, operation_logs, [{"operation_id": operation_id, "lines": lines}])
