from datetime import timedelta

import pytest

from models.action.policy import RetryModel
from models.operation import OperationState
from models.store.operations.put_back import failed, lost
from tests.factories import make_plan
from tests.ticks import MINUTE

RETRY = RetryModel.model_validate({"max_attempts": 5, "backoff": ["PT1M", "PT5M", "PT15M"]})
PLAN = make_plan(retry=RETRY)


@pytest.mark.parametrize(("failures", "minutes"), [(0, 1), (1, 5), (2, 15), (3, 15)])
def test_each_failure_takes_the_next_delay_and_the_last_one_repeats(
    failures: int, minutes: int
) -> None:
    ending = failed(PLAN, failures, "down")

    assert (ending.state, ending.delay) == (OperationState.PENDING, minutes * MINUTE)
    assert (ending.reason, ending.is_failure) == ("retry", True)


@pytest.mark.parametrize(("failures", "permanent"), [(4, False), (0, True)])
def test_the_last_attempt_and_a_permanent_error_fail_for_good(
    failures: int, *, permanent: bool
) -> None:
    ending = failed(PLAN, failures, "down", permanent=permanent)

    assert (ending.state, ending.delay) == (OperationState.FAILED, timedelta(0))
    assert (ending.error, ending.is_failure) == ("down", True)


@pytest.mark.parametrize(("may_repeat", "state"), [(True, "pending"), (False, "failed")])
def test_a_lost_step_begins_again_only_if_it_may_be_repeated(may_repeat: bool, state: str) -> None:
    ending = lost(0, "worker w sent no heartbeat", "pay", may_repeat, is_asked=False)

    assert ending.state == state
    assert ("step pay was running" in (ending.error or "")) is not may_repeat
