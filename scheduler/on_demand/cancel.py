"""Cancel an operation, because somebody asked."""

from dataclasses import dataclass
from uuid import UUID

import sqlalchemy as sa

from broker.sending import send_reserved
from models.errors import Refused
from models.operation import ENDED, OperationState
from models.store import audit, operations
from models.store.operations import restart, unstarted
from models.store.operations.finish import release_waiting
from models.store.operations.outbox import Message

# It may start, or be put back, between two looks at it.
MOST_LOOKS = 5


@dataclass(frozen=True, slots=True)
class Cancelled:
    """An operation that was cancelled, or is asked to end: `state` says which."""

    id: UUID
    state: OperationState


def cancel(engine: sa.Engine, operation_id: UUID, actor: str) -> Cancelled:
    """Cancel an operation that has not started at once; ask one that runs to end.

    Its worker interrupts it at the next heartbeat and ends its process after the grace. Raises
    NotFound, or Refused when it has ended or was asked before.
    """
    for _ in range(MOST_LOOKS):
        with engine.begin() as connection:
            found = _cancel(connection, operation_id, actor)
        if found is not None:
            cancelled, released = found
            send_reserved(engine, released)
            return cancelled
    raise Refused(f"operation {operation_id} starts and is put back all the time; try again")


def _cancel(
    connection: sa.Connection, id: UUID, actor: str
) -> tuple[Cancelled, list[Message]] | None:
    """Return what was cancelled and what waited for it; None when it moved meanwhile."""
    row = operations.get(connection, id)
    reason = f"cancelled by {actor}"
    released: list[Message] = []
    if unstarted.cancel(connection, id, reason):
        state = OperationState.CANCELLED
        released = release_waiting(connection, id)
    elif restart.ask_to_cancel(connection, id, reason):
        state = OperationState.RUNNING
    else:
        now = operations.get(connection, id)
        if now["state"] in ENDED:
            raise Refused(f"operation {id} has ended: it is {now['state']}")
        if now["handing_at"] is not None and now["state"] == OperationState.PENDING:
            raise Refused(f"operation {id} is just being sent; try again in a minute")
        if now["cancel_requested_at"] is not None:
            raise Refused(f"operation {id} was asked to end already: {now['reason']}")
        return None
    audit.write(
        connection,
        small_app_id=row["small_app_id"],
        actor=actor,
        verb="operation.cancel",
        objects={str(id): {"state": row["state"]}},
    )
    return Cancelled(id, state), released
