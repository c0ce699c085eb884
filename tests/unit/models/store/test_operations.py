"""What a row of an operation becomes, decided by values; and that one function alone moves it."""

import ast
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import pytest

from models.action.policy import RetryModel
from models.errors import IllegalMove
from models.notices import TIME_BOX
from models.operation import LEGAL_MOVES, OperationState
from models.store.operations.end import Outcome, _counted, known_after
from models.store.operations.eta import Left, left_of
from models.store.operations.external_worker import progress_columns
from models.store.operations.put_back import failed, lost
from models.store.operations.reserve import Queued
from models.store.operations.transitions import move
from tests.factories import make_plan
from tests.ticks import MINUTE, SECOND

ROOT = Path(__file__).parents[4]
NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
SILENT = Queued("quick", silent=2, due=0)
RETRY = RetryModel.model_validate({"max_attempts": 5, "backoff": ["PT1M", "PT5M", "PT15M"]})
PLAN = make_plan(retry=RETRY)
S = OperationState


@pytest.mark.parametrize(
    ("ran_s", "left"),
    [
        pytest.param(0, Left(NOON + 40 * SECOND, 40), id="begins"),
        pytest.param(39.9999, Left(NOON + 40 * SECOND, 0.001), id="never_zero"),
        pytest.param(79, Left(), id="past_its_end"),
        pytest.param(80, Left(is_longer_than_usual=True), id="twice_as_long"),
    ],
)
def test_what_is_left_is_said_until_it_takes_twice_as_long(ran_s: float, left: Left) -> None:
    assert left_of(NOON, NOON + 40 * SECOND, NOON + ran_s * SECOND) == left
    assert left_of(NOON, None, NOON) == left_of(None, None, NOON) == Left()


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (S.SUCCESS, {"last_success_at": NOON, "failures_in_row": 0, "bad_runs_in_a_row": 0}),
        (S.PARTIAL, {"failures_in_row": 0}),
        (S.HANDED_OVER, {"failures_in_row": 0, "bad_runs_in_a_row": 0}),
        (S.FAILED, {}),
    ],
)
def test_an_end_ends_the_row_of_failures_or_of_troubles(
    state: OperationState, expected: dict[str, object]
) -> None:
    assert known_after(state, NOON) == {"last_state": state, "last_run_at": NOON, **expected}


@pytest.mark.parametrize(
    ("ending", "counted"),
    [
        (Outcome(S.SUCCESS), {}),
        (Outcome(S.PARTIAL), {"bad_runs_in_a_row": 1}),
        (Outcome(S.PARTIAL, reason=TIME_BOX), {}),
        (Outcome(S.FAILED), {"failures_in_row": 1, "bad_runs_in_a_row": 1}),
    ],
)
def test_a_stop_in_time_is_no_trouble(ending: Outcome, counted: dict[str, int]) -> None:
    assert _counted(ending) == {"run_number": 1, **counted}


@pytest.mark.parametrize(
    ("done", "expected"),
    [
        (3, {"processed": 3, "total": 4, "progress": 0.75}),
        (9, {"processed": 9, "total": 4, "progress": 1.0}),
        (-1, {"processed": -1, "total": 4, "progress": 0.0}),
        *((count, {"total": 4}) for count in (2**63, -(2**63), float("inf"), float("nan"))),
    ],
)
def test_progress_is_the_part_that_is_done(done: float, expected: dict[str, object]) -> None:
    found = progress_columns({"done": done, "total": 4, "message": "m", "other": 1})

    assert found == {**expected, "message": "m"}


@pytest.mark.parametrize(
    ("queued", "depth", "read", "is_lost"),
    [
        pytest.param(SILENT, 0, {"minutebook.quick"}, True, id="empty"),
        pytest.param(SILENT, 1, {"minutebook.quick"}, False, id="holds_a_message"),
        pytest.param(SILENT, None, {"minutebook.quick"}, False, id="may_not_be_asked"),
        pytest.param(SILENT, 0, {"minutebook.heavy", "quick"}, False, id="no_worker_reads_it"),
        pytest.param(SILENT._replace(silent=0), 0, {"minutebook.quick"}, False, id="just_sent"),
    ],
)
def test_messages_are_lost_where_a_queue_that_a_worker_reads_is_known_to_be_empty(
    queued: Queued, depth: int | None, read: set[str], is_lost: bool
) -> None:
    assert queued.is_lost(depth, read) is is_lost


@pytest.mark.parametrize(
    ("due", "depth", "waits"), [(1, 3, True), (1, 0, False), (1, None, False), (0, 3, False)]
)
def test_what_is_due_may_wait_in_its_queue_still(due: int, depth: int | None, waits: bool) -> None:
    assert Queued("quick", silent=0, due=due).waits(depth) is waits


@pytest.mark.parametrize(("failures", "minutes"), [(0, 1), (2, 15), (3, 15)])
def test_each_failure_takes_the_next_delay_or_the_last_one(failures: int, minutes: int) -> None:
    ending = failed(PLAN, failures, "down")

    assert (ending.state, ending.delay) == (S.PENDING, minutes * MINUTE)
    assert (ending.reason, ending.is_failure) == ("retry", True)


@pytest.mark.parametrize(("failures", "permanent"), [(4, False), (0, True)])
def test_a_last_attempt_and_a_permanent_error_fail(failures: int, *, permanent: bool) -> None:
    ending = failed(PLAN, failures, "down", permanent=permanent)

    assert (ending.state, ending.delay) == (S.FAILED, timedelta(0))
    assert (ending.error, ending.is_failure) == ("down", True)


@pytest.mark.parametrize(("may_repeat", "state"), [(True, "pending"), (False, "failed")])
def test_a_lost_step_begins_again_only_if_it_may_be_repeated(may_repeat: bool, state: str) -> None:
    ending = lost(0, "worker w sent no heartbeat", "pay", may_repeat, is_asked=False)

    assert ending.state == state
    assert ("step pay was running" in (ending.error or "")) is not may_repeat


def writes_of_state(text: str) -> Iterator[int]:
    """Yield the lines that write the state of operations by an update of their own."""
    for call in ast.walk(ast.parse(text)):
        match call:
            case ast.Call(ast.Attribute(attr="values") as update) if (
                "update(operations)" in ast.unparse(update)
            ):
                dicts = [key for one in call.args if isinstance(one, ast.Dict) for key in one.keys]
                keys = {key.value for key in dicts if isinstance(key, ast.Constant)}
                if "state" in keys | {one.arg for one in call.keywords}:
                    yield call.lineno


def test_no_other_module_writes_the_state_of_an_operation() -> None:
    rooms = ("broker", "cli", "models", "processes", "scheduler", "data", "tasks", "services")
    files = [file for room in rooms for file in (ROOT / room).rglob("*.py")]

    assert [file for file in files if any(writes_of_state(file.read_text("utf-8")))] == []
    for written in ("state='queued', reason=None", "{'state': 'queued'}"):
        assert [*writes_of_state(f"sa.update(operations).where(x).values(\n  {written})")] == [1]


def test_an_illegal_move_is_no_statement() -> None:
    for state, target in product(OperationState, OperationState):
        if target not in LEGAL_MOVES[state]:
            with pytest.raises(IllegalMove, match=f"from {state} to {target}"):
                move(target, since={state})
