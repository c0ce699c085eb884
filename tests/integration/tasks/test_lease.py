"""The lease of an attempt: how one ends that was cut off, and one whose end is being recorded."""

import threading

import pytest
import sqlalchemy as sa

from models.operation import OperationState
from models.store.operations.end import Outcome
from models.store.operations.take import Claim
from runtime.clock import wait_for
from runtime.config import Settings
from tasks import lease
from tasks.lease import GIVEN_BACK, STOPPING, Lease
from tests.factories import claimed, make_action, make_operation
from tests.integration.scheduler.test_tick import SEVEN


def make_lease(engine: sa.Engine, settings: Settings) -> Lease:
    claim = claimed(engine, make_operation(engine, make_action(engine), SEVEN))
    assert isinstance(claim, Claim)
    return Lease(engine, claim, settings.worker, settings.alert)


def beats() -> threading.Thread | None:
    """Return the thread that keeps a lease, if there is one."""
    its = (each for each in threading.enumerate() if each.name == "minutebook lease")
    return next(its, None)


def test_an_end_that_is_not_recorded_for_too_long_leaves_the_lease_to_run_out(
    engine: sa.Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RECORDED_WITHIN_S", 0.3)
    one = make_lease(engine, settings)

    with one.held():
        one.steps_are_over()
        assert wait_for(lambda: beats() is not None, 10)

        assert wait_for(lambda: beats() is None, 10)


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
