"""Estimates of a running operation's end, on both stores."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

import minutebook
from models.sql import database_now
from models.store.operations.eta import MOST_SEEN, estimate, slow_runs
from models.store.scope import WHOLE_INSTALLATION
from runtime.config import Settings
from scheduler.changes import Change
from tests.factories import make_action, make_operation, row_of, seen, update_operation
from tests.integration.tasks.crew import Work
from tests.ticks import MINUTE
from tests.transactions import act

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
RUNNING: dict[str, Any] = {"state": "running", "worker": "w", "heartbeat_at": NOON}


def make_ended(
    engine: sa.Engine,
    action: Change,
    number: int,
    seconds: float,
    state: str = "success",
    rewrites: str | None = None,
) -> None:
    """Record an operation that took so long."""
    id = make_operation(engine, action, NOON - number * MINUTE)
    started_at = NOON - number * MINUTE
    if state != "skipped":
        update_operation(engine, id, **RUNNING)
    ran = {"started_at": started_at, "finished_at": started_at + timedelta(seconds=seconds)}
    update_operation(engine, id, state=state, rewrites=rewrites, **ran)


def estimated(
    engine: sa.Engine,
    action: Change,
    *,
    rewrites: str | None = None,
    expected: timedelta | None = None,
    at: int = 1,
) -> timedelta | None:
    """Return how long after its start an operation of this minute should be done."""
    id = make_operation(engine, action, NOON + at * MINUTE)
    update_operation(engine, id, started_at=NOON, rewrites=rewrites, **RUNNING)
    found = act(engine, estimate, id, expected)
    update_operation(engine, id, state="cancelled")
    return None if found is None else found - NOON


def test_a_first_run_takes_as_long_as_its_document_expects(engine: sa.Engine) -> None:
    action = make_action(engine)
    make_ended(engine, action, 1, 60, state="failed")
    make_ended(engine, action, 2, 60, state="partial")

    assert estimated(engine, action) is None
    assert estimated(engine, action, expected=2 * MINUTE, at=2) == 2 * MINUTE
    make_ended(engine, action, 3, 60)
    assert estimated(engine, action, expected=2 * MINUTE, at=3) == MINUTE


def test_only_runs_that_rewrote_the_same_say_how_long_it_takes(engine: sa.Engine) -> None:
    action = make_action(engine)
    make_ended(engine, action, 1, 300, rewrites="atlas, sales")
    make_ended(engine, action, 2, 0.07, rewrites="")
    make_ended(engine, action, 3, 0.09, rewrites="")
    make_ended(engine, action, 4, 7, rewrites="sales")

    assert estimated(engine, action, rewrites="atlas, sales") == timedelta(seconds=300)
    assert estimated(engine, action, rewrites="", at=2) == timedelta(seconds=0.08)
    assert estimated(engine, action, rewrites="sales", at=3) == timedelta(seconds=7)
    assert estimated(engine, action, rewrites="atlas", at=4) is None


def test_three_that_succeeded_say_how_long_it_takes(engine: sa.Engine) -> None:
    action, other = make_action(engine), make_action(engine, name="other")
    for number, seconds in enumerate((60, 90, 70), 1):
        make_ended(engine, action, number, seconds)
        make_ended(engine, other, number, 1)

    assert estimated(engine, action) == timedelta(seconds=70)


def test_what_lies_far_back_is_not_looked_at(engine: sa.Engine) -> None:
    action = make_action(engine)
    for number in range(1, MOST_SEEN + 1):
        make_ended(engine, action, number, 1, state="skipped")
    for number in range(3):
        make_ended(engine, action, MOST_SEEN + 2 + number, 60)

    assert estimated(engine, action) is None


@pytest.mark.usefixtures("own_steps")
def test_a_running_one_shows_it_and_no_ended_one(engine: sa.Engine, settings: Settings) -> None:
    shown: list[Any] = []

    def slow(context: minutebook.StepContext) -> None:
        shown.append(seen(engine, context.operation_id, lambda row: row["eta_at"] is not None))

    work = Work(engine, settings)
    action = work.action(slow)
    for number in (1, 2, 3):
        make_ended(engine, action, number, 120)
    id = work.operation(action)

    assert work.attempt(id) == "success"
    assert shown[0]["eta_at"] - shown[0]["started_at"] == timedelta(seconds=120)
    assert row_of(engine, id)["eta_at"] is None


def slow(engine: sa.Engine, action: Change, minutes: float, eta: float | None = None) -> list[Any]:
    """Return what is usual of a run that has taken so long, if that is too long."""
    id = make_operation(engine, action, NOON + minutes * MINUTE)
    eta_at = None if eta is None else database_now(60 * (eta - minutes))
    started = database_now(-60 * minutes)
    update_operation(engine, id, started_at=started, eta_at=eta_at, **RUNNING)
    found = act(engine, slow_runs, WHOLE_INSTALLATION, 5 * MINUTE)
    update_operation(engine, id, state="cancelled")
    return [one.usual and round(one.usual / MINUTE) for one in found]


def test_a_run_without_a_history_is_slow_after_an_hour(engine: sa.Engine) -> None:
    action = make_action(engine)

    assert (slow(engine, action, 59), slow(engine, action, 61)) == ([], [None])


def test_a_run_is_slow_if_it_takes_twice_as_long_as_usual(engine: sa.Engine) -> None:
    action = make_action(engine)

    assert [slow(engine, action, one, eta=12) for one in (23, 25)] == [[], [12]]
    assert [slow(engine, action, one, eta=0.5) for one in (5.4, 5.6)] == [[], [0]]


def test_a_run_of_a_follower_is_compared_with_those_before_it(engine: sa.Engine) -> None:
    action = make_action(engine)
    make_ended(engine, action, 1, 720)

    assert [slow(engine, action, one) for one in (23, 25)] == [[], [12]]
