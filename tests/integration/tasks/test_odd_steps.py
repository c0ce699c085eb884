"""What steps raise, return, count and keep, and how they stop in time."""

from asyncio import CancelledError
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import pytest
import sqlalchemy as sa
from pydantic import BaseModel, PlainSerializer

import minutebook
from minutebook.steps import StepOutcome, StepResult
from models.store.scope import WHOLE_INSTALLATION
from models.tables import action_state, notices
from runtime.clock import wait_for
from runtime.sections.processes import WorkerSettings
from scheduler.on_demand.cancel import cancel
from tests.factories import row_of
from tests.integration.tasks.crew import ANN, NOON, Step, Work
from tests.transactions import fetched

PATIENCE_S = 30.0
Run = Callable[[Step], dict[str, Any]]


@pytest.fixture
def run(work: Work) -> Run:
    """Run a function as the step `odd` of an operation; return the operation's row."""
    update = {"worker": WorkerSettings(heartbeat_s=0.1)}
    work.settings = work.settings.model_copy(update=update)

    def run_it(function: Step) -> dict[str, Any]:
        minutebook.step("odd")(function)
        return work.ran(operations={"odd": True})

    return run_it


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("nothing to say")


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (CancelledError("by its loop"), "CancelledError: by its loop"),
        (KeyboardInterrupt(), "KeyboardInterrupt: "),
        (BaseExceptionGroup("both", [KeyboardInterrupt()]), "BaseExceptionGroup: both"),
        (Mute(), "Mute"),
        (SystemExit("bye"), "SystemExit: bye"),
        (minutebook.StepFailed("a\x00b"), "a"),
        (minutebook.StepFailed("lone \ud800"), "lone "),
    ],
    ids=["cancelled", "interrupt", "group", "mute", "exit", "nul", "surrogate"],
)
def test_whatever_a_step_raises_fails_its_operation_at_once(
    run: Run, raised: BaseException, told: str
) -> None:
    def odd(context: minutebook.StepContext) -> None:
        raise raised

    row = run(odd)

    assert (row["state"], row["losses"]) == ("failed", 0)
    assert row["error"].startswith(told)


def waits(_value: object = None) -> str:
    """Wait until it is interrupted."""
    wait_for(lambda: False, PATIENCE_S)
    return "nothing came"


def cleans_up_in_vain() -> None:
    try:
        waits()
    finally:
        raise ValueError("the connection is gone")


class Slow(BaseModel):
    at: Annotated[int, PlainSerializer(waits)] = 0


# pydantic makes an error of its own of an exception that comes while it writes a value.
@pytest.mark.parametrize(
    "works", [waits, cleans_up_in_vain, Slow().model_dump, Slow().model_dump_json]
)
def test_a_cancelled_step_is_cancelled_whatever_error_it_makes_of_that(
    run: Run, engine: sa.Engine, works: Callable[[], object]
) -> None:
    def odd(context: minutebook.StepContext) -> None:
        cancel(engine, context.operation_id, WHOLE_INSTALLATION, "tests")
        works()

    row = run(odd)

    assert (row["state"], row["reason"], row["error"]) == ("cancelled", "cancelled by tests", None)


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ({"rows": 2}, "step odd returned a dict, not a StepResult or None"),
        (
            minutebook.StepResult("no", "failed"),  # type: ignore[arg-type]
            "step odd returned outcome 'failed'; return success or partial, or raise StepFailed",
        ),
    ],
    ids=["dict", "outcome"],
)
def test_what_is_no_result_is_taken_for_no_success(run: Run, returned: object, told: str) -> None:
    row = run(lambda context: returned)

    assert (row["state"], row["error"]) == ("failed", told)
    assert row["steps"][0]["state"] == "failed"


def test_figures_that_json_does_not_know_are_kept_as_text(run: Run) -> None:
    row = run(lambda context: minutebook.StepResult(details={"mean": float("nan"), "at": NOON}))

    assert row["state"] == "success"
    assert row["result"] == {"odd": {"mean": "NaN", "at": str(NOON)}}


def test_progress_is_counted_in_numbers_of_any_kind(run: Run) -> None:
    def odd(context: minutebook.StepContext) -> None:
        context.progress(np.int64(2), np.int64(8), message=NOON, phase="counts")  # type: ignore[arg-type]

    row = run(odd)

    assert row["state"] == "success"
    assert (row["processed"], row["total"]) == (2, 8)


def test_a_checkpoint_put_in_place_of_the_old_one_is_kept(run: Run, engine: sa.Engine) -> None:
    def odd(context: minutebook.StepContext) -> None:
        context.checkpoint = {"last": 5}

    run(odd)

    assert fetched(engine, sa.select(action_state.c.checkpoint)).scalar_one() == {"last": 5}


def test_a_checkpoint_with_a_number_that_json_does_not_know_fails_and_says_so(run: Run) -> None:
    def odd(context: minutebook.StepContext) -> None:
        context.checkpoint["mean"] = float("nan")

    row = run(odd)

    assert row["state"] == "failed"
    assert "the checkpoint cannot be stored, because it is not valid JSON" in row["error"]


ITEMS = 5


def known(work: Work) -> sa.RowMapping:
    return fetched(work.engine, sa.select(action_state)).mappings().one()


def test_three_operations_work_off_what_one_has_no_time_for(work: Work) -> None:
    worked: list[int] = []

    def count(context: minutebook.StepContext) -> StepResult:
        """Work off two items before the time is over, or what is left of them."""
        done = context.checkpoint.get("done", 0)
        worked.extend(items := range(done, min(done + 2, ITEMS)))
        context.checkpoint["done"] = done + len(items)
        if len(worked) == ITEMS:
            return StepResult("all counted")
        while not context.should_stop():
            pass
        assert not context.time_left()
        return StepResult("stopped in time", StepOutcome.PARTIAL)

    policy = {"time_limit": "PT1S", "overlap": "allow"}
    action = work.action(count, policy=policy, hooks={"on_failure": [ANN], "on_success": [ANN]})
    ids = [work.operation(action, number) for number in range(3)]

    ends = [work.attempt(id) for id in ids[:2]]
    between, told = known(work), fetched(work.engine, sa.select(notices)).all()
    ends.append(work.attempt(ids[2]))

    assert ends == ["partial", "partial", "success"]
    assert worked == list(range(ITEMS))
    assert row_of(work.engine, ids[0])["reason"] == "time box"
    assert (between["last_success_at"], between["checkpoint"]) == (None, {"done": 4})
    assert (between["failures_in_row"], between["run_number"], told) == (0, 2, [])
    assert known(work)["last_success_at"] == row_of(work.engine, ids[2])["first_started_at"]
