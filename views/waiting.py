"""Wait for the ends of operations."""

from uuid import UUID

import sqlalchemy as sa

from broker.sending import Sent
from models.operation import ENDED, OperationState
from models.store import operations
from runtime.clock import monotonic, wait_for
from runtime.database import reading
from views.installation import Installation

State = OperationState | str


def wait_for_end(engine: sa.Engine, operation_id: UUID, timeout_s: float) -> State:
    """Return the state of an operation when it has ended, or else after `timeout_s`."""

    def state() -> State:
        with reading(engine) as connection:
            return operations.get_operation_state(operation_id, connection)

    wait_for(lambda: state() in ENDED, timeout_s)
    return state()


def wait_for_all(engine: sa.Engine, ids: list[UUID], timeout_s: float) -> dict[UUID, State]:
    """Return the states of operations when all have ended, or else after `timeout_s`."""
    end = monotonic() + timeout_s
    return {id: wait_for_end(engine, id, max(0.0, end - monotonic())) for id in ids}


def why_unsent(installation: Installation, sent: Sent) -> str | None:
    """Return why messages were not sent yet, None if they were."""
    if sent.error is None:
        return None
    is_ours = installation.settings.uses_embedded_broker
    hint = "; is `minutehand up` running?" if is_ours else ""
    return f"broker unavailable; the daemon sends it later{hint}"
