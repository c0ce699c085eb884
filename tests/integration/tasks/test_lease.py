"""The lease of an attempt: how one ends that was cut off."""

import pytest
import sqlalchemy as sa

from models.operation import OperationState
from models.store.operations.end import Outcome
from models.store.operations.take import Claim
from runtime.config import Settings
from tasks.lease import GIVEN_BACK, STOPPING, Lease
from tasks.step_states import Script
from tests.factories import claimed, make_action, make_operation
from tests.integration.scheduler.test_tick import SEVEN


def make_lease(engine: sa.Engine, settings: Settings) -> Lease:
    claim = claimed(engine, make_operation(engine, make_action(engine), SEVEN))
    assert isinstance(claim, Claim)
    return Lease(engine, claim, settings, Script({}))


CUT_OFF = Outcome(
    OperationState.FAILED,
    error="the worker stopped while step load was running",
    reason="cut off",
)


@pytest.mark.parametrize(("step", "ending"), [(None, GIVEN_BACK), ("load", CUT_OFF)])
def test_an_operation_is_given_back_only_if_its_step_may_begin_twice(
    engine: sa.Engine, settings: Settings, step: str | None, ending: Outcome
) -> None:
    one = make_lease(engine, settings)
    one.interrupted_for, one.unrepeatable = STOPPING, step

    assert one.ending() == ending
