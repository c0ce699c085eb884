"""Each explanation of why an action ran or did not run, with its remedy."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa

from models.errors import NotFound
from models.fingerprint import drawn_offset, jitter_offset
from models.operation import OperationState
from models.sql import database_now
from models.store import workers as worker_store
from models.store.operations.end import Outcome
from models.tables import action_cursor, missed_spans, operations, revisions, workers
from models.values import format_instant
from runtime.config import Settings
from runtime.database import reading
from scheduler.changes import Change, change, editing
from scheduler.explain import explain
from tests.factories import (
    author,
    make_action,
    make_document,
    make_operation,
    spoil,
    update_operation,
)
from tests.ticks import HOUR, MINUTE, run_tick
from tests.transactions import act, claim_as, clock_of, execute, finish, why
from tests.virtual_clock import VirtualClock

SEVEN = datetime(2027, 1, 4, 6, 0, tzinfo=UTC)  # a Monday, 07:00 in Paris
WEEK = timedelta(days=7)
WEEKLY = {"cron_rule": "0 7 * * 1", "timezone": "Europe/Paris"}
HOURLY = {"cron_rule": "0 * * * *", "timezone": "UTC"}


def make_weekly(engine: sa.Engine, **keys: Any) -> Change:
    """Store a weekly action as if made a minute before its first Monday; `keys` are its rule's."""
    return make_action(engine, name="weekly", when={**WEEKLY, **keys}, since=SEVEN - MINUTE)


@pytest.mark.parametrize(
    ("at", "told"),
    [
        (SEVEN + MINUTE, "the last before it is 2027-01-04T06:00:00Z"),
        (SEVEN + MINUTE, "the next is 2027-01-11T06:00:00Z"),
        (SEVEN - WEEK, "was not in force yet"),
        # Instants that no cron rule knows.
        *((datetime(year, 1, 1, tzinfo=UTC), "") for year in (1, 1969, 2200, 9999)),
    ],
)
def test_what_is_no_occurrence_is_told(engine: sa.Engine, at: datetime, told: str) -> None:
    found = why(engine, make_weekly(engine), at)

    assert found.verdict == "not_an_occurrence"
    assert told in found.text


def test_an_instant_that_the_jitter_moves_is_told_with_where_it_went(engine: sa.Engine) -> None:
    VirtualClock(engine, SEVEN)
    action = make_weekly(engine, jitter="PT3H", jitter_each=True)

    found = why(engine, action, SEVEN + WEEK)

    moved = SEVEN + WEEK + drawn_offset(action.uid, SEVEN + WEEK, timedelta(hours=3))
    assert found.verdict == "not_an_occurrence"
    assert found.text.startswith("the rule names it, but its jitter moves it: the last")
    assert f"the next is {format_instant(moved)}" in found.text
    assert why(engine, action, moved).verdict == "not_due_yet"


@pytest.mark.parametrize("each", [False, True])
def test_what_an_exception_leaves_out_is_told_where_the_jitter_would_move_it(
    engine: sa.Engine, each: bool
) -> None:
    left_out = ["2027-01-11"]
    action = make_weekly(engine, jitter="P3D", jitter_each=each, **{"except": left_out})
    three_days = timedelta(days=3)
    offset = jitter_offset(action.uid, three_days)
    if each:
        offset = drawn_offset(action.uid, SEVEN + WEEK, three_days)

    found = why(engine, action, SEVEN + WEEK + offset)

    assert found.text == "the rule names it, but `except` leaves it out: 2027-01-11"


def test_an_instant_that_came_without_a_tick_is_undecided(engine: sa.Engine) -> None:
    now = VirtualClock(engine, SEVEN).now
    action = make_action(engine, since=now - timedelta(minutes=3))
    execute(engine, sa.update(revisions).values(effective_from=now - timedelta(days=1)))

    newest, older = why(engine, action, now), why(engine, action, now - MINUTE)

    assert (newest.verdict, older.verdict) == ("undecided", "undecided")
    assert "would be sent: no daemon has ever ticked" in newest.text
    assert "would be missed (overtaken)" in older.text


def test_one_that_waits_without_a_worker_says_which_queue(engine: sa.Engine) -> None:
    action = make_weekly(engine)
    run_tick(engine, SEVEN)

    found = why(engine, action, SEVEN)

    assert (found.verdict, found.revision) == ("queued", 1)
    assert "no worker listens to queue quick; `minutebook worker --queues quick`" in found.text
    act(engine, worker_store.beat, worker_store.Heartbeat("one", "heavy,quick", 1))
    assert why(engine, action, SEVEN).text.endswith(" for a free worker")
    execute(engine, sa.update(workers).values(stopped_at=database_now()))
    assert "no worker listens to queue quick" in why(engine, action, SEVEN).text


def test_one_that_failed_and_is_tried_again_tells_the_error(engine: sa.Engine) -> None:
    action = make_weekly(engine)
    id = make_operation(engine, action, SEVEN)
    claim_as(engine, id, 1, "worker")
    retry = Outcome(OperationState.PENDING, error="no route", delay=HOUR, is_failure=True)
    finish(engine, id, retry)

    found = why(engine, action, SEVEN)

    assert found.verdict == "pending"
    assert found.text.startswith("attempt 1 did not succeed (no route); it is tried again from ")


def test_one_in_a_missed_span_tells_the_span(engine: sa.Engine) -> None:
    action = make_weekly(engine)
    run_tick(engine, SEVEN + 20 * WEEK + HOUR)

    found = why(engine, action, SEVEN + WEEK)

    assert found.verdict == "missed"
    span = "one of 11 occurrences from 2027-01-04T06:00:00Z to 2027-03-15T06:00:00Z"
    assert f"too late; {span}" in found.text


def test_one_that_is_quarantined_tells_the_fault(engine: sa.Engine) -> None:
    action = make_action(engine, name="weekly")
    act(engine, spoil, plan="{}")
    execute(engine, sa.update(action_cursor).values(next_occurrence_at=database_now()))
    run_tick(engine)
    later = datetime(2190, 1, 1, tzinfo=UTC)

    found = why(engine, action, later)

    assert found.verdict == "quarantined"
    assert "cannot be read" in found.text
    change.apply_all(engine, [make_document(name="weekly")], author())
    assert why(engine, action, later).verdict == "not_due_yet"


@pytest.mark.parametrize(
    ("days_ago", "verdict", "said"),
    [
        pytest.param(91, "pruned", "retention.operations_days is 90", id="beyond_the_retention"),
        pytest.param(89, "unrecorded", "nothing was recorded", id="within_the_retention"),
    ],
)
def test_a_decided_one_without_a_record_was_pruned_only_beyond_the_retention(
    engine: sa.Engine, days_ago: int, verdict: str, said: str
) -> None:
    at = (clock_of(engine) - timedelta(days=days_ago)).replace(second=0, microsecond=0)
    action = make_action(engine, since=at - MINUTE)
    run_tick(engine, at + timedelta(seconds=30))
    for table in (operations, missed_spans):
        execute(engine, sa.delete(table))

    found = why(engine, action, at)

    assert found.verdict == verdict
    assert said in found.text


def make_manual(engine: sa.Engine, action: Change) -> UUID:
    """Record a manual run in the second of the occurrence."""
    by_hand = uuid4()
    make_operation(engine, action, SEVEN, "Manual run by ann")
    execute(engine, sa.update(operations).values(id=by_hand))
    # The occurrence of that second is not decided.
    execute(engine, sa.update(action_cursor).values(watermark=SEVEN - MINUTE))
    return by_hand


def test_of_an_occurrence_and_a_manual_run_before_it_the_first_is_told(engine: sa.Engine) -> None:
    action = make_weekly(engine)
    by_hand = make_manual(engine, action)
    id = make_operation(engine, action, SEVEN)
    update_operation(engine, id, state="skipped", finished_at=SEVEN, reason="paused")

    found = why(engine, action, SEVEN)

    assert found.verdict == "skipped"
    assert [one["id"] for one in found.operations] == [id, by_hand]


def test_a_manual_run_does_not_hide_that_its_instant_is_undecided(engine: sa.Engine) -> None:
    VirtualClock(engine, SEVEN - MINUTE)
    action = make_weekly(engine)
    by_hand = make_manual(engine, action)

    found = why(engine, action, SEVEN)

    assert (found.verdict, [one["id"] for one in found.operations]) == ("not_due_yet", [by_hand])


def test_a_manual_run_at_no_occurrence_is_told_by_itself(engine: sa.Engine) -> None:
    action = make_weekly(engine)
    update_operation(engine, make_manual(engine, action), occurrence_at=SEVEN + MINUTE)

    assert why(engine, action, SEVEN + MINUTE).verdict == "pending"


def test_a_revision_that_somebody_broke_is_told(engine: sa.Engine) -> None:
    action = make_weekly(engine)
    broken = sa.func.replace(revisions.c.plan, "Europe/Paris", "Europe/Nowhere")
    execute(engine, sa.update(revisions).values(plan=broken))

    answer = why(engine, action, SEVEN)

    assert answer.verdict == "quarantined"
    assert "the plan of revision 1 cannot be read" in answer.text


def test_who_asks_for_a_subject_is_told_of_what_is_about_nobody(
    engine: sa.Engine, settings: Settings
) -> None:
    action = make_weekly(engine)
    make_operation(engine, action, SEVEN)

    found = act(engine, lambda here: explain(action.uid, SEVEN, here, settings, subject="ann"))

    assert found.verdict == "pending"


def test_an_action_that_nobody_knows_is_not_found(engine: sa.Engine, settings: Settings) -> None:
    with reading(engine) as connection, pytest.raises(NotFound, match="no action has the uid"):
        explain(uuid4(), SEVEN, connection, settings)


def test_a_naive_instant_is_refused(engine: sa.Engine) -> None:
    with pytest.raises(ValueError, match="naive instant"):
        why(engine, make_action(engine), datetime(2027, 1, 1))  # noqa: DTZ001


def test_a_pause_is_told_from_its_beginning_whatever_was_edited_since(engine: sa.Engine) -> None:
    clock = VirtualClock(engine, SEVEN)
    action = make_action(engine, name="one", when=HOURLY)
    clock.set(SEVEN + MINUTE)
    editing.set_active(engine, action.uid, active=False, author=author())
    for hour in (3, 4):
        clock.set(SEVEN + hour * HOUR)
        edited = make_document(name="one", when=HOURLY, active=False, description=str(hour))
        change.apply_all(engine, [edited], author())

    found = why(engine, action, SEVEN + 9 * HOUR)

    assert found.verdict == "paused"
    assert found.text == "paused under revision 4 of 2027-01-04T10:00:00Z by tests"


def test_more_than_a_tick_sends_are_foretold_as_sent(engine: sa.Engine) -> None:
    clock = VirtualClock(engine, SEVEN)
    policy = {"catch_up": "all", "look_back": "P2D"}
    action = make_action(engine, policy=policy)
    clock.set(SEVEN + 1_500 * MINUTE)

    found = why(engine, action, SEVEN + 1_200 * MINUTE)

    assert (found.verdict, "is due and would be sent" in found.text) == ("undecided", True)


@pytest.mark.parametrize(("end", "hour"), [("starts_at", 1), ("ends_at", 9)])
def test_what_only_its_ends_leave_out_says_so(engine: sa.Engine, end: str, hour: int) -> None:
    VirtualClock(engine, SEVEN)
    five = (SEVEN + 5 * HOUR).isoformat()
    action = make_action(engine, when=HOURLY, policy={end: five})

    found = why(engine, action, SEVEN + hour * HOUR)

    told = "the rule names it, but policy.starts_at or policy.ends_at leaves it out"
    assert (found.verdict, found.text) == ("not_an_occurrence", told)
