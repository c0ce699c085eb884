"""Wait for the end of operations, and say what the broker did not take."""

from uuid import UUID

import sqlalchemy as sa

from cli.invocation import Invocation
from cli.output import print_error
from models.operation import ENDED, OperationState
from models.store import operations
from runtime.clock import wait_for
from runtime.database import reading
from tasks.sending import Sent


def wait_for_end(engine: sa.Engine, operation_id: UUID, timeout_s: float) -> OperationState | str:
    """Return the state of an operation once it has ended, or after `timeout_s` as it stands."""

    def state() -> OperationState | str:
        with reading(engine) as connection:
            return operations.get_operation_state(operation_id, connection)

    wait_for(lambda: state() in ENDED, timeout_s)
    return state()


def say_unsent(invocation: Invocation, sent: Sent) -> None:
    """Say on stderr that the broker is away, if it is: the daemon sends what waits."""
    if sent.error is not None:
        hint = "; is `minutehand up` running?" if invocation.settings.uses_embedded_broker else ""
        print_error(f"broker unavailable; the daemon sends it later{hint}")
