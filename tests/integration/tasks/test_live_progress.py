"""What a step reports, as somebody who polls the operation sees it while the step runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from time import monotonic
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa
from sqlalchemy import event

import minutebook
from data.store.status import statuses_of
from minutebook.lease import CANCELLED
from models.sql import read_clock
from models.store.operations.put_back import take_back_lost
from models.tables import operations
from runtime.config import Settings
from runtime.database import reading
from tasks.execute import run_attempt
from tasks.registry import Registry
from tests.factories import make_operation, row_of, seen, update_operation
from tests.integration.tasks.test_execute import NOON, make_running_action

pytestmark = pytest.mark.usefixtures("own_steps")

Step = Callable[[minutebook.StepContext], Any]
Run = Callable[..., dict[str, Any]]

LONG_AGO = NOON - timedelta(days=3_650)


@pytest.fixture
def run(engine: sa.Engine, settings: Settings) -> Run:
    """Run an operation whose steps are these functions; return its row."""

    def start(*functions: Step, **document: Any) -> dict[str, Any]:
        names = [function.__name__ for function in functions]
        for name, function in zip(names, functions, strict=True):
            minutebook.step(name)(function)
        wanted = dict.fromkeys(names, True)
        action = make_running_action(engine, Registry(), operations=wanted, **document)
        id = make_operation(engine, action, NOON)
        run_attempt(engine, settings, Registry(), (id, 1), "tests")
        return row_of(engine, id)

    return start


@contextmanager
def counting(engine: sa.Engine) -> Iterator[list[str]]:
    """Count the writes to running operations."""
    writes: list[str] = []

    def note(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("UPDATE operations") and "heartbeat_at" in statement:
            writes.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield writes
    finally:
        event.remove(engine, "before_cursor_execute", note)


def data_status(engine: sa.Engine, id: UUID) -> dict[str, Any]:
    """Return the status of the small app of an operation."""
    with reading(engine) as connection:
        app = connection.execute(
            sa.select(operations.c.small_app_id).where(operations.c.id == id)
        ).scalar_one()
        now = read_clock(connection)
        return statuses_of(connection, [app], now, timedelta(seconds=45))[app]


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
    engine: sa.Engine, run: Run, first: dict[str, Any], then: dict[str, Any]
) -> None:
    names = {"blocking": "is_blocking", "done": "processed"}
    took: list[float] = []

    def works(context: minutebook.StepContext) -> None:
        context.progress(**first)
        context.progress(**then)
        since = monotonic()
        wanted = {names.get(key, key): value for key, value in then.items()}
        seen(engine, context.operation_id, lambda row: all(row[k] == v for k, v in wanted.items()))
        took.append(monotonic() - since)

    assert run(works)["state"] == "success"
    # As a rule 0.7 s at most.
    assert took[0] < 3


def test_a_step_that_reports_in_a_loop_writes_a_few_times(engine: sa.Engine, run: Run) -> None:
    took: list[float] = []

    def works(context: minutebook.StepContext) -> None:
        since = monotonic()
        for number in range(10_000):
            context.progress(number, 10_000, f"row {number}", f"phase {number}", blocking=True)
        took.append(monotonic() - since)

    with counting(engine) as writes:
        run(works)

    assert len(writes) < 10 + took[0] * 15


def test_a_step_that_blocks_is_seen_to_before_it_goes_on(engine: sa.Engine, run: Run) -> None:
    shown: list[tuple[Any, ...]] = []

    def look(context: minutebook.StepContext) -> None:
        found = data_status(engine, context.operation_id)
        keys = ("status", "phase", "blocking_maintenance")
        shown.append(tuple(found[key] for key in keys))

    def works(context: minutebook.StepContext) -> None:
        look(context)
        context.progress(phase="swap", blocking=True)
        look(context)

    def follows(context: minutebook.StepContext) -> None:
        look(context)

    row = run(works, follows)

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
def test_no_end_of_a_step_leaves_the_data_covered(run: Run, end: Step, max_attempts: int) -> None:
    def works(context: minutebook.StepContext) -> Any:
        context.progress(blocking=True)
        return end(context)

    row = run(works, policy={"retry": {"max_attempts": max_attempts}})

    assert row["state"] in {"failed", "partial", "pending"}
    assert row["is_blocking"] is None


def test_a_lost_worker_leaves_the_data_uncovered(
    engine: sa.Engine, settings: Settings, run: Run
) -> None:
    shown: list[bool] = []

    def works(context: minutebook.StepContext) -> None:
        context.progress(blocking=True)
        update_operation(engine, context.operation_id, heartbeat_at=LONG_AGO)
        with engine.begin() as connection:
            taken_back = take_back_lost(connection, settings.worker.lease, 1, settings.alert)
        assert [id for id, _ in taken_back] == [context.operation_id]
        shown.append(data_status(engine, context.operation_id)["blocking_maintenance"])

    row = run(works)

    assert shown == [False]
    assert (row["state"], row["attempt"], row["is_blocking"]) == ("pending", 2, None)


def test_a_cancel_uncovers_the_data(engine: sa.Engine, run: Run) -> None:
    def works(context: minutebook.StepContext) -> None:
        context.progress(blocking=True)
        with engine.begin() as connection:
            asked = sa.update(operations).where(operations.c.id == context.operation_id)
            connection.execute(asked.values(cancel_requested_at=NOON, reason=CANCELLED))
        context.progress(phase="goes on")
        while not context.should_stop():
            pass

    row = run(works)

    assert (row["state"], row["is_blocking"]) == ("cancelled", None)
