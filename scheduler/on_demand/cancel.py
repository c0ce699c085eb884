"""Cancel an operation on request."""

from dataclasses import dataclass
from functools import partial
from uuid import UUID

import sqlalchemy as sa

from broker.sending import send_ended
from models.errors import Refused
from models.operation import ENDED, OperationState
from models.store import audit, operations
from models.store.operations import put_back, refusals
from models.store.operations.end import EndResult
from models.store.scope import Scope
from runtime.db_retry import in_transaction


@dataclass(frozen=True, slots=True)
class Cancelled:
    """An operation that was cancelled, or, if `state` is running, asked to end."""

    id: UUID
    state: OperationState


def cancel(engine: sa.Engine, operation_id: UUID, scope: Scope, actor: str) -> Cancelled:
    """Cancel an unstarted operation at once; ask a running one to end.

    Its worker interrupts it at the next heartbeat and ends its process after the grace. Raises
    NotFound, or Refused if it has ended or was asked before.
    """
    within = partial(cancel_within, id=operation_id, scope=scope, actor=actor)
    cancelled, ended = in_transaction(engine, within)
    send_ended(engine, ended)
    return cancelled


def cancel_within(
    connection: sa.Connection, id: UUID, scope: Scope, actor: str
) -> tuple[Cancelled, EndResult | None]:
    """Cancel an operation as `cancel` does, in a transaction of the caller's.

    Return it, with its end if it had not started.
    """
    row = operations.get(connection, id, scope)
    reason = f"cancelled by {actor}"
    ended = refusals.cancel(connection, id, reason)
    if ended is not None:
        state = ended.state
    elif put_back.ask_to_cancel(connection, id, reason):
        state = OperationState.RUNNING
    else:
        now = operations.get(connection, id, scope)
        if now["state"] in ENDED:
            raise Refused(f"run {id} has ended: it is {now['state']}")
        if now["send_started_at"] is not None and now["state"] == OperationState.PENDING:
            raise Refused(f"run {id} is being sent; try again in a minute")
        if now["cancel_requested_at"] is not None:
            raise Refused(f"run {id} was already asked to end: {now['reason']}")
        raise Refused(f"run {id} changed its state meanwhile; try again")
    audit.write(
        connection,
        small_app_id=row["small_app_id"],
        actor=actor,
        verb="operation.cancel",
        objects={str(id): {"state": row["state"]}},
    )
    return Cancelled(id, state), ended
