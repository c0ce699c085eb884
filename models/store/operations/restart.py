"""What ended runs again, under its own id: a rerun, a retry, a backfill; or ends unstarted."""

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.operation import UNSTARTED, OperationState
from models.sql import database_now
from models.store.operations import RESERVED_FOR, is_being_sent
from models.store.operations.outbox import Message
from models.tables import operations

# How an operation looks that has not begun: counters start anew, no end is left.
_NOTHING = (
    "reason", "error", "result", "finished_at", "cancel_requested_at", "queued_at", "started_at",
    "heartbeat_at", "worker", "waiting_for", "phase", "message", "progress", "processed", "total",
    "eta_at", "handing_at",
)  # fmt: skip
_ANEW = {
    **dict.fromkeys(_NOTHING),
    "state": OperationState.PENDING,
    **dict.fromkeys(("failures", "losses", "sendings"), 0),
}


def run_again(
    connection: sa.Connection,
    seen: Mapping[str, Any],
    states: Collection[OperationState],
    becomes: Mapping[str, Any],
) -> Message | None:
    """Make an ended operation pending, reserved for sending by the caller; None if it moved.

    `seen` is its row, `states` are those it may stand in, `becomes` says what it runs. Whatever ran
    before gets a new attempt; a missed one never had its first.
    """
    was_missed = operations.c.state == OperationState.MISSED
    again = (
        sa.update(operations)
        .where(operations.c.id == seen["id"], operations.c.attempt == seen["attempt"])
        .where(operations.c.state.in_(states))
        .values(
            **_ANEW,
            **becomes,
            attempt=sa.case((was_missed, operations.c.attempt), else_=operations.c.attempt + 1),
            not_before=database_now(RESERVED_FOR),
        )
        .returning(operations.c.id, operations.c.attempt, operations.c.task, operations.c.queue)
    )
    row = connection.execute(again).one_or_none()
    return None if row is None else Message(*row)


def cancel_waiting(connection: sa.Connection, operation_id: UUID, reason: str) -> bool:
    """Cancel an operation that has not started, also one that waits; False if it is none."""
    cancelled = (
        sa.update(operations)
        .where(operations.c.id == operation_id, operations.c.state.in_(UNSTARTED))
        .where(sa.not_(is_being_sent(operations.c)))
        .values(
            state=OperationState.CANCELLED,
            reason=reason,
            waiting_for=None,
            finished_at=database_now(),
        )
    )
    return connection.execute(cancelled).rowcount == 1


def ask_to_cancel(connection: sa.Connection, operation_id: UUID, reason: str) -> bool:
    """Ask a running operation to end: its worker's next heartbeat reads it.

    False if it does not run or was asked before.
    """
    asked = (
        sa.update(operations)
        .where(operations.c.id == operation_id, operations.c.state == OperationState.RUNNING)
        .where(operations.c.cancel_requested_at.is_(None))
        .values(cancel_requested_at=database_now(), reason=reason)
    )
    return connection.execute(asked).rowcount == 1
