"""The last attempt is the operation's row; those before it have rows of their own."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.errors import LeaseLost
from models.operation import OperationState
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import put_back
from models.store.operations.end import Outcome
from models.store.operations.take import Claim
from models.store.operations.transitions import attempts_of
from models.store.scope import WHOLE_INSTALLATION
from models.tables import attempts
from scheduler.on_demand.restart import retry
from tests.attempts import beat
from tests.factories import make_action, make_operation, row_of, update_operation
from tests.transactions import act, claim_as, fetched, finish

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
FAILED = Outcome(OperationState.FAILED, error="no paper", is_failure=True)
RETRIED = Outcome(OperationState.PENDING, error="no ink", reason="retry", is_failure=True)


@pytest.fixture
def operation(engine: sa.Engine) -> UUID:
    return make_operation(engine, make_action(engine), NOON)


def start(engine: sa.Engine, id: UUID, attempt: int = 1) -> None:
    assert isinstance(claim_as(engine, id, attempt, f"worker {attempt}"), Claim)


def kept(engine: sa.Engine) -> int:
    return int(fetched(engine, sa.select(sa.func.count()).select_from(attempts)).scalar_one())


def shown(engine: sa.Engine, id: UUID) -> list[tuple[Any, ...]]:
    found = act(engine, attempts_of, id)
    assert all(one["started_at"] for one in found)
    names = ("attempt", "worker", "state", "error")
    return [(*(one[name] for name in names), one["finished_at"] is not None) for one in found]


def test_the_only_attempt_has_no_row_of_its_own(engine: sa.Engine, operation: UUID) -> None:
    start(engine, operation)
    assert shown(engine, operation) == [(1, "worker 1", "running", None, False)]

    finish(engine, operation, FAILED)

    assert shown(engine, operation) == [(1, "worker 1", "failed", "no paper", True)]
    assert kept(engine) == 0


def test_what_is_put_back_keeps_its_attempt(engine: sa.Engine, operation: UUID) -> None:
    start(engine, operation)
    finish(engine, operation, RETRIED)
    first = (1, "worker 1", "failed", "no ink", True)
    assert shown(engine, operation) == [first]

    start(engine, operation, 2)

    assert shown(engine, operation) == [first, (2, "worker 2", "running", None, False)]


def test_a_lost_attempt_is_kept_with_its_loss(engine: sa.Engine, operation: UUID) -> None:
    start(engine, operation)
    update_operation(engine, operation, heartbeat_at=LONG_AGO)
    act(engine, put_back.take_back_lost, timedelta(seconds=45), 10, NO_ALERTS)

    error = "lost: worker worker 1 sent no heartbeat"
    assert shown(engine, operation) == [(1, "worker 1", "lost", error, True)]


def test_what_runs_again_by_hand_keeps_its_last_attempt(engine: sa.Engine, operation: UUID) -> None:
    start(engine, operation)
    finish(engine, operation, FAILED)
    ended_at = row_of(engine, operation)["finished_at"]

    retry(engine, operation, WHOLE_INSTALLATION, "ann")

    assert shown(engine, operation) == [(1, "worker 1", "failed", "no paper", True)]
    assert act(engine, attempts_of, operation)[0]["finished_at"] == ended_at


def test_an_attempt_that_has_moved_keeps_nothing(engine: sa.Engine, operation: UUID) -> None:
    start(engine, operation)
    finish(engine, operation, FAILED)

    with pytest.raises(LeaseLost):
        finish(engine, operation, RETRIED)
    with pytest.raises(LeaseLost):
        act(engine, beat, operation, 1)

    assert kept(engine) == 0
