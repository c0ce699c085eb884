"""What tests of statements do to a filled database, and what they ask of its statements."""

from typing import Any
from uuid import UUID

from models.operation import OperationState
from models.store.notices.alerting import NO_ALERTS
from models.store.operations.end import Outcome
from models.store.operations.reserve import Message
from models.store.operations.take import Claim
from scheduler.changes import Change
from tests import factories
from tests.attempts import end
from tests.factories import make_action, make_operation
from tests.integration.statements.conftest import MINUTE, Filled
from tests.integration.statements.plans import Statements

SUCCESS = Outcome(OperationState.SUCCESS)


def make(filled: Filled, name: str, **changes: Any) -> tuple[Change, UUID, UUID]:
    """Store an action with two operations."""
    action = make_action(filled.engine, name=name, **changes)
    first = make_operation(filled.engine, action, filled.now - 2 * MINUTE, "Scheduled action")
    second = make_operation(filled.engine, action, filled.now - MINUTE, "Scheduled action")
    return action, first, second


def claimed(filled: Filled, id: UUID) -> Claim | str:
    """Claim the first attempt of an operation, or be told why not."""
    return factories.claimed(filled.engine, id)


def ended(filled: Filled, id: UUID) -> list[Message]:
    """End the first attempt of an operation well; return what that releases."""
    with filled.engine.begin() as connection:
        return end(connection, id, 1, SUCCESS, alerts=NO_ALERTS).released


def assert_indexed(statements: Statements, *indexes: str) -> None:
    """Check that something was executed, that nothing was read whole, and by which indexes."""
    assert statements.seen
    scans, used = statements.scans(), statements.indexes()
    assert not scans, scans
    assert set(indexes) <= used, used
