"""Run an operation again under its id, or ask a running one to end."""

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.operation import OperationState
from models.sql import database_now, is_still
from models.store.operations import RESERVED_FOR, attempts
from models.store.operations.reserve import MESSAGE, Message
from models.store.operations.transitions import RUNNING, fenced, move
from models.tables import operations

# Columns without a value before the start.
_NOTHING = (
    "reason", "error", "result", "finished_at", "cancel_requested_at", "sent_at", "started_at",
    "phase", "message", "progress", "processed", "total",
)  # fmt: skip
_ANEW = {**dict.fromkeys(_NOTHING), "failures": 0, "losses": 0}


def run_again(
    connection: sa.Connection,
    seen: Mapping[str, Any],
    states: Collection[OperationState],
    becomes: Mapping[str, Any],
) -> Message | None:
    """Make an ended operation pending, reserved for sending by the caller; None if it moved.

    `seen` is its row, `states` are the states allowed, `becomes` are new values.
    It gets a new attempt, unless it never had its first: it did not start, nor was it handed over.
    """
    began = (operations.c.first_started_at, operations.c.handing_at)
    has_begun = sa.or_(*(one.is_not(None) for one in began))
    values = {
        **_ANEW,
        **becomes,
        "attempt": sa.case((has_begun, operations.c.attempt + 1), else_=operations.c.attempt),
        "not_before": database_now(RESERVED_FOR),
    }
    attempts.keep_last(connection, seen["id"], seen["attempt"])
    its_attempt = fenced(seen["id"], seen["attempt"])
    again = move(OperationState.PENDING, its_attempt, since=states, **values)
    row = connection.execute(again.returning(*MESSAGE)).one_or_none()
    return None if row is None else Message(*row)


def ask_to_cancel(connection: sa.Connection, operation_id: UUID, reason: str) -> bool:
    """Ask an operation to end at its next heartbeat; False if not running or asked before."""
    asked = (
        sa.update(operations)
        .where(operations.c.id == operation_id, is_still(operations.c.state, RUNNING))
        .where(operations.c.cancel_requested_at.is_(None))
        .values(cancel_requested_at=database_now(), reason=reason)
    )
    return connection.execute(asked).rowcount == 1
