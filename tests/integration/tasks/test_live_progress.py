"""What a step reports, as somebody who polls the operation sees it while the step runs."""

from time import monotonic
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

import minutebook
from data.store.status import statuses_of
from minutebook.lease import CANCELLED
from models.sql import read_clock
from models.store.operations.put_back import take_back_lost
from runtime.database import reading
from tests.factories import row_of, seen, update_operation
from tests.integration.tasks.crew import NOON, Step, Work
from tests.statements import executed
from tests.ticks import DAY, LEASE
from tests.transactions import act


def data_status(engine: sa.Engine, id: UUID) -> dict[str, Any]:
    app = row_of(engine, id)["small_app_id"]
    with reading(engine) as connection:
        return statuses_of(connection, [app], read_clock(connection), LEASE)[app]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param({"phase": "a"}, {"phase": "b"}, id="phase"),
        pytest.param({"message": "a"}, {"message": "b"}, id="message"),
        pytest.param({"blocking": True}, {"blocking": False}, id="blocking"),
        pytest.param({"phase": "a"}, {"done": 7, "total": 9}, id="counts"),
    ],
)
def test_what_is_reported_just_after_a_write_is_seen_while_the_step_goes_on(
    work: Work, first: dict[str, Any], then: dict[str, Any]
) -> None:
    names = {"blocking": "is_blocking", "done": "processed"}
    took: list[float] = []

    def works(context: minutebook.StepContext) -> None:
        context.progress(**first)
        context.progress(**then)
        since = monotonic()
        wanted = {names.get(key, key): value for key, value in then.items()}
        seen(
            work.engine,
            context.operation_id,
            lambda row: all(row[k] == v for k, v in wanted.items()),
        )
        took.append(monotonic() - since)

    assert work.ran(works)["state"] == "success"
    # As a rule 0.7 s at most.
    assert took[0] < 3


def test_a_step_that_reports_in_a_loop_writes_a_few_times(work: Work) -> None:
    took: list[float] = []

    def works(context: minutebook.StepContext) -> None:
        since = monotonic()
        for number in range(10_000):
            context.progress(number, 10_000, f"row {number}", f"phase {number}", blocking=True)
        took.append(monotonic() - since)

    with executed(work.engine) as statements:
        work.ran(works)

    writes = [one for one in statements if one.startswith("UPDATE operations")]
    assert len(writes) < 10 + took[0] * 15


def test_a_step_that_blocks_is_seen_to_before_it_goes_on(work: Work) -> None:
    shown: list[tuple[Any, ...]] = []

    def look(context: minutebook.StepContext) -> None:
        found = data_status(work.engine, context.operation_id)
        keys = ("status", "phase", "blocking_maintenance")
        shown.append(tuple(found[key] for key in keys))

    def works(context: minutebook.StepContext) -> None:
        look(context)
        context.progress(phase="swap", blocking=True)
        look(context)

    def follows(context: minutebook.StepContext) -> None:
        look(context)

    row = work.ran(works, follows)

    assert shown == [("empty", None, False), ("running", "swap", True), ("empty", None, False)]
    assert row["is_blocking"] is None


def fails(context: minutebook.StepContext) -> None:
    raise minutebook.StepFailed("no")


def crashes(context: minutebook.StepContext) -> None:
    raise RuntimeError("no")


def ends(context: minutebook.StepContext) -> minutebook.StepResult:
    return minutebook.StepResult("half", minutebook.StepOutcome.PARTIAL)


@pytest.mark.parametrize("end", [fails, crashes, ends])
@pytest.mark.parametrize("max_attempts", [1, 2])
def test_no_end_of_a_step_leaves_the_data_covered(work: Work, end: Step, max_attempts: int) -> None:
    def works(context: minutebook.StepContext) -> Any:
        context.progress(blocking=True)
        return end(context)

    row = work.ran(works, policy={"retry": {"max_attempts": max_attempts}})

    assert row["state"] in {"failed", "partial", "pending"}
    assert row["is_blocking"] is None


def test_a_lost_worker_leaves_the_data_uncovered(
    work: Work,
) -> None:
    shown: list[bool] = []

    def works(context: minutebook.StepContext) -> None:
        context.progress(blocking=True)
        update_operation(work.engine, context.operation_id, heartbeat_at=NOON - 3_650 * DAY)
        alert = work.settings.alert
        taken_back = act(work.engine, take_back_lost, work.settings.worker.lease, 1, alert)
        assert [id for id, _ in taken_back] == [context.operation_id]
        shown.append(data_status(work.engine, context.operation_id)["blocking_maintenance"])

    row = work.ran(works)

    assert shown == [False]
    assert (row["state"], row["attempt"], row["is_blocking"]) == ("pending", 2, None)


def test_a_cancel_uncovers_the_data(work: Work) -> None:
    def works(context: minutebook.StepContext) -> None:
        context.progress(blocking=True)
        asked = {"cancel_requested_at": NOON, "reason": CANCELLED}
        update_operation(work.engine, context.operation_id, **asked)
        context.progress(phase="goes on")
        while not context.should_stop():
            pass

    row = work.ran(works)

    assert (row["state"], row["is_blocking"]) == ("cancelled", None)
