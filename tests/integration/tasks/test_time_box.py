"""A stop in time: partial, no failure, and the next operation goes on from the checkpoint."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
import sqlalchemy as sa

import minutebook
from minutebook.steps import StepOutcome, StepResult, _registered
from models.tables import action_state, notices
from runtime.config import Settings
from runtime.database import reading
from scheduler.changes import Change
from scheduler.changes.change import create_all
from tasks.execute import run_attempt
from tasks.registry import Registry
from tests.factories import author, make_document, make_operation, row_of
from tests.ticks import MINUTE

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
TOLD = {"on_failure": [{"mail": "ann@example.com"}], "on_success": [{"mail": "ann@example.com"}]}
ITEMS = 5


pytestmark = pytest.mark.usefixtures("own_steps")


def run(engine: sa.Engine, settings: Settings, id: UUID, attempt: int = 1) -> str:
    return run_attempt(engine, settings, Registry(), (id, attempt), "tests")


def known(engine: sa.Engine, action: Change) -> sa.RowMapping:
    with reading(engine) as connection:
        query = sa.select(action_state).where(action_state.c.action_uid == action.uid)
        return connection.execute(query).mappings().one()


def make_counter(engine: sa.Engine, worked: list[int], most: int) -> Change:
    """Store an action that works off items, at most so many of them before its time is over."""

    @minutebook.step("count")
    def count(context: minutebook.StepContext) -> StepResult:
        begun = len(worked)
        while context.checkpoint.get("done", 0) < ITEMS:
            if len(worked) - begun >= most:
                while not context.should_stop():
                    pass
                assert not context.time_left()
                return StepResult("stopped in time", StepOutcome.PARTIAL)
            item = context.checkpoint.get("done", 0)
            worked.append(item)
            context.checkpoint["done"] = item + 1
        return StepResult("all counted")

    return create_all(
        engine,
        [
            make_document(
                operations={"count": True},
                policy={"time_limit": "PT1S", "overlap": "allow"},
                hooks=TOLD,
            )
        ],
        author(Registry().steps),
    )[0]


def test_three_operations_work_off_what_one_has_no_time_for(
    engine: sa.Engine, settings: Settings
) -> None:
    worked: list[int] = []
    action = make_counter(engine, worked, most=2)
    ids = [make_operation(engine, action, NOON + n * MINUTE) for n in range(3)]

    first, second = run(engine, settings, ids[0]), run(engine, settings, ids[1])
    between = known(engine, action)
    third = run(engine, settings, ids[2])

    assert (first, second, third) == ("partial", "partial", "success")
    assert worked == list(range(ITEMS))
    assert row_of(engine, ids[0])["reason"] == "time box"
    assert (between["last_success_at"], between["checkpoint"]) == (None, {"done": 4})
    assert (between["failures_in_row"], between["run_number"]) == (0, 2)
    assert known(engine, action)["last_success_at"] == row_of(engine, ids[2])["first_started_at"]


def test_nobody_is_told_of_a_stop_in_time(engine: sa.Engine, settings: Settings) -> None:
    action = make_counter(engine, [], most=1)
    id = make_operation(engine, action, NOON)

    assert run(engine, settings, id) == "partial"

    with reading(engine) as connection:
        assert connection.execute(sa.select(notices.c.kind)).all() == []


def test_a_failure_after_a_stop_in_time_keeps_the_checkpoint(
    engine: sa.Engine, settings: Settings
) -> None:
    worked: list[int] = []
    action = make_counter(engine, worked, most=2)
    ids = [make_operation(engine, action, NOON + n * MINUTE) for n in range(3)]
    run(engine, settings, ids[0])
    _registered.pop("count")

    @minutebook.step("count")
    def count(context: minutebook.StepContext) -> StepResult:
        context.checkpoint["done"] = 99
        raise minutebook.StepFailed("boom")

    assert run(engine, settings, ids[1]) == "failed"
    assert known(engine, action)["checkpoint"] == {"done": 2}
