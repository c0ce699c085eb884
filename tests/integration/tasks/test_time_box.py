"""A stop in time: partial, no failure, and the next operation goes on from the checkpoint."""

import sqlalchemy as sa

import minutebook
from minutebook.steps import StepOutcome, StepResult
from models.tables import action_state, notices
from scheduler.changes import Change
from tests.factories import row_of
from tests.integration.tasks.crew import ANN, Work
from tests.transactions import fetched

ITEMS = 5


def known(work: Work) -> sa.RowMapping:
    return fetched(work.engine, sa.select(action_state)).mappings().one()


def make_counter(work: Work, worked: list[int], most: int) -> Change:
    """Store an action that works off items, at most so many of them before its time is over."""

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

    policy = {"time_limit": "PT1S", "overlap": "allow"}
    return work.action(count, policy=policy, hooks={"on_failure": [ANN], "on_success": [ANN]})


def test_three_operations_work_off_what_one_has_no_time_for(work: Work) -> None:
    worked: list[int] = []
    action = make_counter(work, worked, most=2)
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
