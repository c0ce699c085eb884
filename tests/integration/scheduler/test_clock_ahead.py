"""What was written while the database's clock was ahead holds nothing up once it is right."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.operation import OperationState
from models.store import audit
from models.store.notices.alerting import NO_ALERTS
from models.store.operations.end import Outcome
from models.store.operations.take import Claim
from models.store.scope import Scope
from models.tables import backfills, notices, operations, revisions
from runtime.config import Settings
from scheduler.changes import Change, editing
from scheduler.events.dependants import send_ended
from scheduler.sweep import Sweeper
from scheduler.tick import look
from services import jobs, verdict
from services.jobs.documents import NewJob
from services.verdict import Finding, Kind
from tests.factories import (
    author,
    claimed,
    cursor_of,
    installation_on,
    make_action,
    row_of,
    rows_of,
)
from tests.ticks import DAY, HOUR, LEASE, MINUTE, SECOND, tick_at
from tests.transactions import act, execute, fetched, finish
from tests.virtual_clock import VirtualClock

SEVEN = datetime(2027, 1, 4, 7, 0, tzinfo=UTC)
EVERY_MINUTE = {"cron_rule": "* * * * *", "timezone": "UTC"}
HOURLY = {"every": "PT1H"}


@pytest.fixture
def clock(engine: sa.Engine) -> VirtualClock:
    """The clock of the engine's database, at seven, where a first tick has come."""
    made = VirtualClock(engine, SEVEN)
    tick_at(made, SEVEN)
    return made


def changed(engine: sa.Engine, action: Change) -> None:
    editing.rename(engine, action.uid, "renamed", author())


def switched(engine: sa.Engine, action: Change) -> None:
    for active in (False, True):
        editing.set_active(engine, action.uid, active=active, author=author())


def left_alone(_engine: sa.Engine, _action: Change) -> None:
    """Change nothing."""


FOUR_YEARS = timedelta(days=1_461)
COUNTED = {"rrule": "FREQ=DAILY;COUNT=3", "at": "08:00", "timezone": "UTC"}
FROM_END = {"every": "PT1H", "from": "end"}


@pytest.mark.parametrize(
    ("when", "due", "ahead", "then"),
    [
        pytest.param(EVERY_MINUTE, 10, FOUR_YEARS, changed, id="cron"),
        pytest.param(HOURLY, 65, FOUR_YEARS, left_alone, id="interval"),
        pytest.param(HOURLY, 65, 2 * HOUR, switched, id="interval_switched"),
        pytest.param(COUNTED, 60, FOUR_YEARS, switched, id="rrule"),
        pytest.param(FROM_END, 5, FOUR_YEARS, left_alone, id="from_end"),
        pytest.param(FROM_END, 5, 2 * HOUR, switched, id="from_end_switched"),
    ],
)
def test_an_action_saved_ahead_of_any_tick_runs_by_the_right_clock(
    engine: sa.Engine,
    clock: VirtualClock,
    when: Any,
    due: int,
    ahead: timedelta,
    then: Callable[[sa.Engine, Change], None],
) -> None:
    clock.set(SEVEN + ahead)
    action = make_action(engine, when=when)
    clock.set(SEVEN + 5 * MINUTE)
    then(engine, action)
    tick_at(clock, SEVEN + 5 * MINUTE)
    for minutes in (10, 60, 65):
        tick_at(clock, SEVEN + minutes * MINUTE)
        tick_at(clock, SEVEN + minutes * MINUTE + SECOND)

    found = [row["occurrence_at"] for row in rows_of(engine, action)]
    assert found
    assert min(abs(at - SEVEN - due * MINUTE) for at in found) <= SECOND
    assert min(found) > SEVEN + 4 * MINUTE


def test_a_revision_that_cannot_be_read_is_passed_over(
    engine: sa.Engine, clock: VirtualClock
) -> None:
    clock.set(SEVEN + DAY)
    action = make_action(engine, when=HOURLY)
    execute(engine, sa.text("UPDATE revisions SET plan = '{}'"))

    tick_at(clock, SEVEN + MINUTE)

    assert cursor_of(engine, action)["watermark"] == SEVEN + MINUTE


@pytest.mark.parametrize("interval_s", [60, 3_600])
def test_a_job_added_ahead_keeps_its_grid_and_runs_by_the_right_clock(
    engine: sa.Engine, clock: VirtualClock, settings: Settings, interval_s: int
) -> None:
    door = installation_on(engine, settings)
    job = NewJob(url="http://127.0.0.1/x", interval_s=interval_s)
    clock.set(SEVEN + FOUR_YEARS)
    jobs.add(door, job)
    jobs.add(door, job.model_copy(update={"meta": {"n": 1}}))
    tick_at(clock, SEVEN + MINUTE)
    (begins,) = (one.next_run_at for one in jobs.list_jobs(door, 10).items)
    assert begins is not None

    tick_at(clock, begins)

    state = fetched(engine, sa.select(operations.c.occurrence_at)).scalars().all()
    assert state == [begins]
    assert begins <= SEVEN + MINUTE + timedelta(seconds=interval_s)
    assert (SEVEN + FOUR_YEARS - begins) % MINUTE == 57 * SECOND
    clock.set(begins + SECOND)
    again = jobs.add(door, job.model_copy(update={"interval_s": interval_s + 1}))
    assert again.change == "changed"
    assert jobs.add(door, job.model_copy(update={"interval_s": interval_s + 1})).change == (
        "unchanged"
    )
    (row,) = jobs.list_jobs(door, 10).items
    assert row.next_run_at == begins + timedelta(seconds=interval_s + 1)


@pytest.mark.parametrize("then", [left_alone, changed])
def test_a_given_start_stays_even_if_it_is_the_instant_of_the_creation(
    engine: sa.Engine, clock: VirtualClock, then: Callable[[sa.Engine, Change], None]
) -> None:
    ahead = SEVEN + 2 * HOUR + 7 * SECOND
    clock.set(ahead)
    action = make_action(engine, when={"every": "PT1H", "starting_at": ahead.isoformat()})
    clock.set(SEVEN)
    then(engine, action)
    tick_at(clock, SEVEN + MINUTE)

    tick_at(clock, ahead + HOUR + MINUTE)

    found = {row["occurrence_at"] for row in rows_of(engine, action)}
    assert {(at - ahead) % HOUR for at in found} == {timedelta(0)}


def test_a_change_after_a_small_step_back_does_not_begin_before_the_one_it_follows(
    engine: sa.Engine, clock: VirtualClock
) -> None:
    clock.set(SEVEN + MINUTE)
    action = make_action(engine, when=EVERY_MINUTE)
    clock.set(SEVEN)

    changed(engine, action)

    query = sa.select(revisions.c.effective_from).order_by(revisions.c.number)
    first, second = fetched(engine, query).scalars()
    assert first <= second


FAILED_ONCE = Outcome(OperationState.PENDING, "no ink", delay=HOUR, is_failure=True)
DONE = Outcome(OperationState.SUCCESS)


def at(engine: sa.Engine, action: Change, occurrence: datetime) -> UUID:
    (id,) = (row["id"] for row in rows_of(engine, action) if row["occurrence_at"] == occurrence)
    return UUID(str(id))


def run(engine: sa.Engine, id: UUID, outcome: Outcome = DONE) -> None:
    assert isinstance(claimed(engine, id), Claim)
    finish(engine, id, outcome)


def test_after_a_run_ahead_of_time_a_retry_starts(engine: sa.Engine, clock: VirtualClock) -> None:
    action = make_action(engine, when=EVERY_MINUTE)
    tick_at(clock, SEVEN + DAY)
    run(engine, at(engine, action, SEVEN + DAY))
    tick_at(clock, SEVEN + MINUTE)
    tick_at(clock, SEVEN + 2 * MINUTE)
    id = at(engine, action, SEVEN + 2 * MINUTE)
    run(engine, id, FAILED_ONCE)

    assert isinstance(claimed(engine, id, 2), Claim)


def test_what_runs_ahead_of_the_clock_is_replaced(engine: sa.Engine, clock: VirtualClock) -> None:
    action = make_action(engine, when=EVERY_MINUTE, policy={"overlap": "replace"})
    tick_at(clock, SEVEN + DAY)
    ahead = at(engine, action, SEVEN + DAY)
    claimed(engine, ahead)
    tick_at(clock, SEVEN + MINUTE)
    tick_at(clock, SEVEN + 2 * MINUTE)

    claimed(engine, at(engine, action, SEVEN + 2 * MINUTE))

    assert row_of(engine, ahead)["cancel_requested_at"] is not None


def test_a_backoff_of_a_right_clock_is_waited_for(engine: sa.Engine, clock: VirtualClock) -> None:
    right, wrong = (make_action(engine, name=name, when=EVERY_MINUTE) for name in ("a", "b"))
    tick_at(clock, SEVEN + MINUTE)
    kept, released = (at(engine, one, SEVEN + MINUTE) for one in (right, wrong))
    run(engine, kept, FAILED_ONCE)
    clock.set(SEVEN + 30 * MINUTE)
    run(engine, released, FAILED_ONCE)
    tick_at(clock, SEVEN + 30 * MINUTE)

    tick_at(clock, SEVEN + 2 * MINUTE)

    assert row_of(engine, kept)["not_before"] == SEVEN + MINUTE + HOUR
    # Released, sent at once, and waited for as after any sending.
    assert row_of(engine, released)["not_before"] <= SEVEN + 2 * MINUTE + 5 * MINUTE


def test_what_failed_ahead_of_any_tick_is_tried_again_and_the_right_backoff_kept(
    engine: sa.Engine, clock: VirtualClock
) -> None:
    action = make_action(engine, when=EVERY_MINUTE)
    tick_at(clock, SEVEN + MINUTE)
    id = at(engine, action, SEVEN + MINUTE)
    clock.set(SEVEN + FOUR_YEARS)
    run(engine, id, FAILED_ONCE)

    found = [tick_at(clock, SEVEN + n * MINUTE).clock_set_back_s for n in (2, 3)]

    assert found == [(FOUR_YEARS - 2 * MINUTE).total_seconds(), 0]
    assert row_of(engine, id)["not_before"] <= SEVEN + 8 * MINUTE
    assert isinstance(claimed(engine, id, 2), Claim)
    finish(engine, id, FAILED_ONCE, 2)
    # Another step back leaves the backoff of the right clock alone.
    tick_at(clock, SEVEN + 13 * MINUTE)
    tick_at(clock, SEVEN + 4 * MINUTE)
    assert row_of(engine, id)["not_before"] == SEVEN + 3 * MINUTE + HOUR


def test_what_is_due_by_an_end_ahead_of_any_tick_runs_once_by_the_right_clock(
    engine: sa.Engine, clock: VirtualClock
) -> None:
    action = make_action(engine, name="a", when={"cron_rule": "1 7 * * *", "timezone": "UTC"})
    later = {"after": {"action": "a"}, "delay": "PT5M"}
    other = make_action(engine, name="b", when=later)
    tick_at(clock, SEVEN + MINUTE)
    clock.set(SEVEN + FOUR_YEARS)
    run(engine, at(engine, action, SEVEN + MINUTE))

    found = [tick_at(clock, SEVEN + n * MINUTE).clock_set_back_s > 0 for n in range(2, 9)]

    assert found == [True, *[False] * 6]
    assert [row["occurrence_at"] for row in rows_of(engine, other)] == [SEVEN + 7 * MINUTE]


def test_what_ran_by_an_end_ahead_runs_no_second_time(
    engine: sa.Engine, clock: VirtualClock
) -> None:
    action = make_action(engine, name="a", when={"cron_rule": "1 7 * * *", "timezone": "UTC"})
    other = make_action(engine, name="b", when={"after": {"action": "a"}})
    tick_at(clock, SEVEN + MINUTE)
    clock.set(SEVEN + FOUR_YEARS)
    id = at(engine, action, SEVEN + MINUTE)
    assert isinstance(claimed(engine, id), Claim)
    send_ended(engine, finish(engine, id, DONE))

    found = [tick_at(clock, SEVEN + n * MINUTE).clock_set_back_s > 0 for n in range(2, 5)]

    assert found == [True, False, False]
    assert [row["occurrence_at"] for row in rows_of(engine, other)] == [SEVEN + FOUR_YEARS]


def test_what_was_sent_or_owed_ahead_of_the_clock_waits_for_none_of_its_instants(
    engine: sa.Engine, clock: VirtualClock
) -> None:
    action = make_action(engine, when=EVERY_MINUTE)
    tick_at(clock, SEVEN + DAY)
    id, year = at(engine, action, SEVEN + DAY), SEVEN + 365 * DAY
    notice = {"id": id, "kind": "run_ended", "target": {}, "payload": {}, "state": "owed"}
    filling = {"id": id, "small_app_id": 1, "action_uid": action.uid, "since": SEVEN}
    filling |= {"until": year, "mode": "all", "state": "active", "actor": "tests"}
    ahead = {"not_before": year, "tries": 0, "created_at": year}
    execute(engine, sa.insert(notices).values(notice | ahead))
    execute(engine, sa.insert(backfills).values(**filling, not_before=year, requested_at=year))

    clock.set(SEVEN + MINUTE)
    look(engine, None, Sweeper(LEASE, NO_ALERTS))

    found = [
        fetched(engine, sa.select(table.c.not_before).where(table.c.id == id)).scalar_one()
        for table in (operations, notices, backfills)
    ]
    assert found == [SEVEN + MINUTE] * 3


def test_what_people_chose_for_later_stays(engine: sa.Engine, clock: VirtualClock) -> None:
    next_year = SEVEN + 365 * DAY
    later = make_action(engine, when={"every": "P1D", "starting_at": next_year.isoformat()})
    before = cursor_of(engine, later)
    tick_at(clock, SEVEN + MINUTE)

    report = tick_at(clock, SEVEN + 2 * MINUTE)

    assert report.clock_set_back_s == 0
    assert cursor_of(engine, later) == before
    assert before["next_occurrence_at"] == next_year


@pytest.mark.parametrize("apart", [timedelta(milliseconds=3), 5 * MINUTE], ids=str)
def test_daemons_whose_clocks_differ_a_little_leave_each_other_alone(
    engine: sa.Engine, clock: VirtualClock, apart: timedelta
) -> None:
    action = make_action(engine, when=EVERY_MINUTE)
    tick_at(clock, SEVEN + MINUTE + apart)

    report = tick_at(clock, SEVEN + MINUTE)

    assert report.clock_set_back_s == 0
    assert cursor_of(engine, action)["watermark"] == SEVEN + MINUTE + apart


def clock_findings(engine: sa.Engine, settings: Settings) -> list[Finding]:
    found = act(engine, verdict.assess, settings).verdict.findings
    return [one for one in found if one.kind is Kind.CLOCK]


def test_what_was_set_right_is_in_the_audit_and_a_finding_for_a_day(
    engine: sa.Engine, clock: VirtualClock, settings: Settings
) -> None:
    tick_at(clock, SEVEN + 2 * HOUR)
    tick_at(clock, SEVEN + HOUR)

    (entry,) = act(engine, audit.listed, Scope(None), 10)
    told = (entry["actor"], entry["verb"], entry["details"]["seconds"])
    assert told == ("daemon", "clock.set_right", 3600.0)
    assert [one.text for one in clock_findings(engine, settings)] == [
        "the database's clock was 1 h ahead until 2027-01-04T08:00:00Z"
    ]
    clock.set(SEVEN + 2 * DAY)
    assert clock_findings(engine, settings) == []
