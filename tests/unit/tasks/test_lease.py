import pytest

from models.operation import OperationState
from models.store.operations.end import Outcome
from tasks.lease import GIVEN_BACK, STOPPING, Lease

ERROR = "the worker stopped while step load was running"
CUT_OFF = Outcome(OperationState.FAILED, error=ERROR, reason="cut off")


@pytest.mark.parametrize(("step", "ending"), [(None, GIVEN_BACK), ("load", CUT_OFF)])
def test_an_operation_is_given_back_only_if_its_step_may_begin_twice(
    step: str | None, ending: Outcome
) -> None:
    one = object.__new__(Lease)
    one.interrupted_for, one.unrepeatable = STOPPING, step

    assert one.ending() == ending
