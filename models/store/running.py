"""Writes to a running operation: each repeats its attempt, and no row changed means LeaseLost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.errors import LeaseLost
from models.operation import (
    DONE,
    OUTCOMES,
    UNSTARTED,
    OperationState,
    StepState,
    after_loss,
)
from models.sql import database_now, insert_ignoring, stands_in, upsert
from models.store.outbox import Message
from models.tables import action_state, attempts, operation_logs, operations

MOST_LOG_LINES = 200


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ends: `state` is an outcome, or pending when it is to be tried again."""

    state: OperationState
    error: str | None = None
    reason: str | None = None
    result: dict[str, Any] | None = None
    checkpoint: dict[str, Any] | None = None
    # For pending: how long until the next attempt, and what this one counts as.
    delay: timedelta = timedelta(0)
    is_failure: bool = False
    is_loss: bool = False


@dataclass(frozen=True, slots=True)
class Memory:
    """What an action (and subject) knows of its earlier operations."""

    run_number: int
    last_success_at: datetime | None
    checkpoint: dict[str, Any]


def memory(connection: sa.Connection, uid: UUID, subject: str | None) -> Memory:
    """Return what an action knows; before its first operation, nothing."""
    row = connection.execute(
        sa.select(action_state).where(
            action_state.c.action_uid == uid, action_state.c.subject == (subject or "")
        )
    ).one_or_none()
    if row is None:
        return Memory(0, None, {})
    return Memory(row.run_number, row.last_success_at, dict(row.checkpoint or {}))


def _mine(operation_id: UUID, attempt: int) -> sa.ColumnElement[bool]:
    return sa.and_(
        operations.c.id == operation_id,
        operations.c.attempt == attempt,
        operations.c.state == OperationState.RUNNING,
    )


def beat(connection: sa.Connection, operation_id: UUID, attempt: int) -> bool:
    """Renew the lease; return whether a cancel was asked for. Raises LeaseLost."""
    beaten = (
        sa.update(operations)
        .where(_mine(operation_id, attempt))
        .values(heartbeat_at=database_now())
        .returning(operations.c.cancel_requested_at)
    )
    row = connection.execute(beaten).one_or_none()
    if row is None:
        raise LeaseLost(f"operation {operation_id} attempt {attempt} is no longer ours")
    return row.cancel_requested_at is not None


def write(
    connection: sa.Connection,
    operation_id: UUID,
    attempt: int,
    values: dict[str, Any],
    lines: Sequence[dict[str, Any]] | None = None,
) -> None:
    """Write progress, phase, message or steps, and the last log lines. Raises LeaseLost."""
    moved = sa.update(operations).where(_mine(operation_id, attempt))
    changed = connection.execute(moved.values(heartbeat_at=database_now(), **values))
    if changed.rowcount != 1:
        raise LeaseLost(f"operation {operation_id} attempt {attempt} is no longer ours")
    if lines is not None:
        upsert(
            connection,
            operation_logs,
            [{"operation_id": operation_id, "lines": list(lines)[-MOST_LOG_LINES:]}],
        )


def end(
    connection: sa.Connection, operation_id: UUID, attempt: int, ending: Ending
) -> list[Message]:
    """End this attempt; return the operation that waited for it, released, to be sent.

    One transaction of the caller's: the row, its attempt, what the action knows, and the release.
    Raises LeaseLost.
    """
    if ending.state is OperationState.PENDING and _cancel_requested(connection, operation_id):
        # Put back, it would be cancelled at its first heartbeat, or cancel what replaces it.
        ending = replace(ending, state=OperationState.CANCELLED, is_failure=False)
    moved = (
        sa.update(operations)
        .where(_mine(operation_id, attempt))
        .values(_ending_values(ending))
        .returning(
            operations.c.action_uid,
            operations.c.subject,
            operations.c.first_started_at,
            operations.c.steps,
        )
    )
    row = connection.execute(moved).mappings().one_or_none()
    if row is None:
        raise LeaseLost(f"operation {operation_id} attempt {attempt} is no longer ours")
    if any(step["state"] == StepState.RUNNING for step in row["steps"] or []):
        steps = [_cut_off(step, ending) for step in row["steps"]]
        ended = sa.update(operations).where(operations.c.id == operation_id)
        connection.execute(ended.values(steps=steps))
    connection.execute(
        sa.update(attempts)
        .where(attempts.c.operation_id == operation_id, attempts.c.attempt == attempt)
        .values(
            finished_at=database_now(),
            state=_attempt_state(ending),
            error=ending.error or ending.reason,
        )
    )
    _remember(connection, row, ending)
    return release_waiting(connection, operation_id)


def _cancel_requested(connection: sa.Connection, operation_id: UUID) -> bool:
    asked = sa.select(operations.c.cancel_requested_at).where(operations.c.id == operation_id)
    return connection.execute(asked.with_for_update()).scalar_one_or_none() is not None


def _cut_off(step: dict[str, Any], ending: Ending) -> dict[str, Any]:
    """Return a step's story when its attempt ends: one that still ran was cut off."""
    if step["state"] != StepState.RUNNING:
        return step
    is_put_back = ending.state is OperationState.PENDING and not ending.is_failure
    told = StepState.WAITING if is_put_back else StepState.FAILED
    return {**step, "state": told, "error": ending.error or ending.reason}


def _attempt_state(ending: Ending) -> str:
    if ending.is_failure:
        return OperationState.FAILED
    if ending.state is OperationState.PENDING:
        return ending.reason or "put back"
    return ending.state


def _ending_values(ending: Ending) -> dict[str, Any]:
    values: dict[str, Any] = {
        "state": ending.state,
        "error": ending.error,
        "reason": ending.reason,
        "failures": operations.c.failures + int(ending.is_failure),
        "losses": operations.c.losses + int(ending.is_loss),
    }
    if ending.state is OperationState.PENDING:
        return values | {
            "attempt": operations.c.attempt + 1,
            "sendings": 0,
            "worker": None,
            "heartbeat_at": None,
            "not_before": database_now(ending.delay),
        }
    if ending.state is OperationState.CANCELLED:
        # Who asked for it has said why.
        values["reason"] = sa.func.coalesce(operations.c.reason, ending.reason)
    if ending.state in DONE:
        values |= {"progress": 1.0, "message": None, "phase": None}
    if ending.result is not None:
        values["result"] = ending.result
    return values | {
        "finished_at": database_now(),
        "eta_at": None,
    }


def _remember(connection: sa.Connection, row: sa.RowMapping, ending: Ending) -> None:
    """Write what the action knows: in the transaction that ends the operation."""
    key = {"action_uid": row["action_uid"], "subject": row["subject"] or ""}
    values: dict[str, Any] = {}
    if ending.checkpoint is not None:
        values["checkpoint"] = ending.checkpoint
    if ending.state in OUTCOMES:
        values |= _remembered_outcome(ending.state, row["first_started_at"])
    if not values:
        return
    connection.execute(insert_ignoring(connection, action_state).values(**key))
    connection.execute(
        sa.update(action_state)
        .where(*(action_state.c[name] == value for name, value in key.items()))
        .values(values)
    )


def _remembered_outcome(state: OperationState, started_at: datetime) -> dict[str, Any]:
    values: dict[str, Any] = {
        "last_state": state,
        "last_run_at": started_at,
        "run_number": action_state.c.run_number + 1,
    }
    if state is OperationState.SUCCESS:
        values |= {"last_success_at": started_at, "failures_in_row": 0, "troubles_in_row": 0}
    elif state is OperationState.PARTIAL:
        values |= {"failures_in_row": 0, "troubles_in_row": action_state.c.troubles_in_row + 1}
    elif state is OperationState.FAILED:
        values |= {
            "failures_in_row": action_state.c.failures_in_row + 1,
            "troubles_in_row": action_state.c.troubles_in_row + 1,
        }
    return values


def release_waiting(connection: sa.Connection, ended: UUID) -> list[Message]:
    """Release the oldest operation that waits for `ended`; the others now wait for that one."""
    waiting = (
        sa.select(operations.c.id)
        .where(operations.c.waiting_for == ended, stands_in(operations.c.state, UNSTARTED))
        .order_by(operations.c.occurrence_at, operations.c.id)
    )
    ids = connection.execute(waiting).scalars().all()
    if not ids:
        return []
    connection.execute(
        sa.update(operations).where(operations.c.id.in_(ids[1:])).values(waiting_for=ids[0])
    )
    released = (
        sa.update(operations)
        .where(operations.c.id == ids[0], operations.c.state.in_(UNSTARTED))
        .values(waiting_for=None, reason=None, not_before=database_now(), sendings=0)
        .returning(operations.c.id, operations.c.attempt, operations.c.task, operations.c.queue)
    )
    return [Message(*row) for row in connection.execute(released)]


def release_stranded(connection: sa.Connection) -> int:
    """Release operations that wait for one that no longer runs nor waits; return how many."""
    holder = operations.alias("holder")
    stranded = (
        sa.select(operations.c.waiting_for)
        .outerjoin(holder, holder.c.id == operations.c.waiting_for)
        .where(operations.c.waiting_for.is_not(None), operations.c.state.in_(UNSTARTED))
        .where(
            holder.c.id.is_(None)
            | holder.c.state.not_in(
                [OperationState.RUNNING, OperationState.PENDING, OperationState.QUEUED]
            )
        )
        .distinct()
    )
    return sum(
        len(release_waiting(connection, ended))
        for ended in connection.execute(stranded).scalars().all()
    )


def take_back_lost(
    connection: sa.Connection, lease: timedelta, limit: int
) -> list[tuple[UUID, str]]:
    """Take back running operations without a heartbeat for `lease`; return id and new state."""
    # A heartbeat that lies ahead is of a clock that was: it says nothing of now.
    stale = (operations.c.heartbeat_at < database_now(-lease)) | (
        operations.c.heartbeat_at > database_now(lease)
    )
    lost = (
        connection.execute(
            sa.select(operations)
            .where(stands_in(operations.c.state, {OperationState.RUNNING}), stale)
            .order_by(operations.c.heartbeat_at)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        .mappings()
        .all()
    )
    return [(row["id"], _take_back(connection, row)) for row in lost]


def _take_back(connection: sa.Connection, row: sa.RowMapping) -> OperationState:
    step = next((one for one in row["steps"] or [] if one.get("state") == StepState.RUNNING), None)
    state = after_loss(
        row["losses"],
        repeatable=step is None or step.get("repeatable", True),
        cancel_requested=row["cancel_requested_at"] is not None,
    )
    text = f"lost: worker {row['worker']} gave no heartbeat"
    if state is OperationState.FAILED and step is not None:
        text += f"; step {step['name']} was running"
    ending = Ending(state, error=text, reason="lost", is_loss=True)
    end(connection, row["id"], row["attempt"], ending)
    return state
