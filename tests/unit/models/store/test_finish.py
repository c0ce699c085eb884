from datetime import UTC, datetime

import pytest

from models.notices import TIME_BOX
from models.operation import OperationState
from models.store.operations.end import Outcome, _counted, known_after

AT = datetime(2027, 1, 4, 12, tzinfo=UTC)
S = OperationState
ONE = {"run_number": 1}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (S.SUCCESS, {"last_success_at": AT, "failures_in_row": 0, "bad_runs_in_a_row": 0}),
        (S.PARTIAL, {"failures_in_row": 0}),
        (S.HANDED_OVER, {"failures_in_row": 0, "bad_runs_in_a_row": 0}),
        (S.FAILED, {}),
    ],
)
def test_an_end_ends_the_row_of_failures_or_of_troubles(
    state: OperationState, expected: dict[str, object]
) -> None:
    assert known_after(state, AT) == {"last_state": state, "last_run_at": AT, **expected}


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        pytest.param(Outcome(S.SUCCESS), ONE, id="success"),
        pytest.param(Outcome(S.PARTIAL), ONE | {"bad_runs_in_a_row": 1}, id="partial"),
        pytest.param(Outcome(S.PARTIAL, reason=TIME_BOX), ONE, id="stopped_in_time"),
        pytest.param(
            Outcome(S.FAILED), ONE | {"failures_in_row": 1, "bad_runs_in_a_row": 1}, id="failed"
        ),
    ],
)
def test_a_stop_in_time_is_no_trouble(ending: Outcome, expected: dict[str, int]) -> None:
    assert _counted(ending) == expected
