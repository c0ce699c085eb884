"""Missed spans are counted when they are read: by their revision, without what has an operation."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from models.sql import database_now
from models.store import facts, operations, totals
from models.store.actions import missed
from models.store.notices.alerting import NO_ALERTS
from models.store.totals import FIRST_ID, Place
from models.store.totals.amounts import Key
from models.tables import missed_spans, notices
from runtime.database import reading
from scheduler.changes import change
from scheduler.changes.change import Changed
from scheduler.counting import count_ended
from scheduler.record import ActionRef, operation_row
from scheduler.sweep import Sweeper
from scheduler.tick import TickReport, tick
from tests.factories import (
    DEFAULT_APP,
    STEPS,
    author,
    caused_by,
    make_action,
    make_document,
    make_operation,
    rows_of,
    spans_of,
)
from tests.statements import rows_read

SEVEN = datetime(2026, 1, 5, 7, tzinfo=UTC)
# A due date must lie ahead when its action is made.
LATER = datetime(2036, 1, 7, 7, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
HOURLY = {"cron_rule": "0 * * * *", "timezone": "UTC"}
EVERY_MINUTE = {"cron_rule": "* * * * *", "timezone": "UTC"}


def run_tick(engine: sa.Engine, now: datetime) -> TickReport:
    return tick(engine, now, Sweeper(timedelta(seconds=45), NO_ALERTS), steps=STEPS)


@pytest.fixture
def slept(engine: sa.Engine) -> Changed:
    """An hourly action that missed 30 occurrences from seven on: 20 of them lie in a span."""
    action = make_action(engine, when=HOURLY, since=SEVEN - MINUTE)
    run_tick(engine, SEVEN + 29 * HOUR + 30 * MINUTE)
    return action


def count_of(engine: sa.Engine) -> int:
    """Return the count of the oldest span."""
    ((_, count), *_) = spans_of(engine)
    return count


def set_on(engine: sa.Engine, table: sa.Table, **values: Any) -> None:
    with engine.begin() as connection:
        connection.execute(sa.update(table).values(values))


def test_what_is_run_later_is_no_longer_missed(engine: sa.Engine, slept: Changed) -> None:
    before = count_of(engine)
    for hour in (0, 3, 19):
        make_operation(engine, slept, SEVEN + hour * HOUR)

    assert (before, count_of(engine)) == (20, 17)


def test_an_operation_at_another_instant_of_the_span_changes_nothing(
    engine: sa.Engine, slept: Changed
) -> None:
    make_operation(engine, slept, SEVEN + 90 * MINUTE)

    assert count_of(engine) == 20


def test_a_manual_run_at_the_second_of_an_occurrence_changes_nothing(
    engine: sa.Engine, slept: Changed
) -> None:
    ref = ActionRef(slept.uid, 1, slept.name, slept.revision)
    at = SEVEN + HOUR
    with engine.begin() as connection:
        row = operation_row(ref, slept.plan, uuid4(), at, caused_by("Manual run by ann"))
        operations.record(connection, [row])

    assert count_of(engine) == 20


def test_a_span_counts_by_its_own_revision(engine: sa.Engine, slept: Changed) -> None:
    change.apply_all(engine, [make_document(when=EVERY_MINUTE)], author())

    assert count_of(engine) == 20


def test_a_part_of_a_span_is_counted(engine: sa.Engine, slept: Changed) -> None:
    make_operation(engine, slept, SEVEN + HOUR)
    make_operation(engine, slept, SEVEN + 10 * HOUR)

    with reading(engine) as connection:
        (span,) = missed.spans(connection)
        counts = [missed.count(connection, span, SEVEN + hours * HOUR) for hours in (-1, 0, 9, 19)]
    assert counts == [18, 17, 9, 0]


def test_a_span_of_a_broken_plan_keeps_the_count_of_its_tick(
    engine: sa.Engine, slept: Changed
) -> None:
    make_operation(engine, slept, SEVEN)
    with engine.begin() as connection:
        its = sa.text("UPDATE revisions SET plan = :plan")
        connection.execute(its, {"plan": '{"active": true}'})

    assert count_of(engine) == 20


def test_the_stored_count_is_not_read_for_a_rule(engine: sa.Engine, slept: Changed) -> None:
    set_on(engine, missed_spans, count=7)

    assert count_of(engine) == 20


def begin_counting(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        place = Place(SEVEN - HOUR, FIRST_ID, SEVEN - HOUR)
        facts.set_fact(connection, totals.COUNTED_TO, place.text())


def test_metrics_count_each_span_and_notice_once_a_page_at_a_time(
    engine: sa.Engine, slept: Changed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first page counts nothing; spans that were recorded at one instant are on two pages."""
    monkeypatch.setattr(totals, "PAGE", 2)
    at = SEVEN - 10 * MINUTE
    empty = {"recorded_at": at, "first_at": SEVEN + MINUTE, "last_at": SEVEN + 2 * MINUTE}
    ((span, _),) = spans_of(engine)
    of_span = {one.name: span[one.name] for one in missed_spans.columns if not one.primary_key}
    later = [at + n * MINUTE for n in (1, 2, 2, 2, 3)]
    with engine.begin() as connection:
        connection.execute(sa.delete(missed_spans))
        rows = [of_span | empty] * 2 + [of_span | {"recorded_at": one} for one in later]
        connection.execute(sa.insert(missed_spans), rows)
        connection.execute(sa.insert(notices), [notice(one) for one in (at, *later)])
    begin_counting(engine)

    count_ended(engine)

    with reading(engine) as connection:
        found = dict(totals.all_of(connection))
    app = DEFAULT_APP.id
    assert found[Key(app, "missed")] == 5 * 20
    assert found[Key(app, "notices", "done")] == 6


def notice(finished_at: datetime) -> dict[str, Any]:
    """Return the row of a delivered notice."""
    return {
        "id": uuid4(),
        "small_app_id": DEFAULT_APP.id,
        "kind": "success",
        "target": {},
        "payload": {},
        "state": "done",
        "tries": 1,
        "not_before": finished_at,
        "created_at": finished_at,
        "finished_at": finished_at,
    }


def test_metrics_count_as_status_does(engine: sa.Engine, slept: Changed) -> None:
    """A clock that was set back has cut the span since it was recorded."""
    set_on(engine, missed_spans, recorded_at=database_now(-3600.0), last_at=SEVEN + 3 * HOUR)
    begin_counting(engine)

    with reading(engine) as connection:
        found = totals.next_page(connection).found

    assert found.amounts[Key(DEFAULT_APP.id, "missed")] == count_of(engine) < 20


def test_what_is_sent_between_two_missed_ones_is_not_missed(engine: sa.Engine) -> None:
    """With catch-up `all`, the trigger with the longer look-back is sent within the span."""
    due_date = {"due_date": "2036-01-07T06:30:20", "timezone": "UTC"}
    when = [EVERY_MINUTE, due_date]
    action = make_action(engine, when=when, policy={"catch_up": "all"}, since=LATER - HOUR)

    report = run_tick(engine, LATER)

    states = [row["state"] for row in rows_of(engine, action)]
    assert len(states) + count_of(engine) == 61
    assert report.missed == states.count("missed") + count_of(engine)


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_beside_a_span_of_months_only_the_own_hour_of_another_is_read(engine: sa.Engine) -> None:
    often = make_action(engine, name="often", when=HOURLY, since=SEVEN)
    rarely = make_action(engine, name="rarely", when=HOURLY, since=SEVEN)
    ids = [make_operation(engine, often, SEVEN + n * HOUR) for n in range(100)]
    late = make_operation(engine, rarely, SEVEN + 50 * HOUR)
    last = SEVEN + 99 * HOUR
    spans = [
        {"action_uid": rarely.uid, "first_at": SEVEN, "last_at": last},
        {"action_uid": often.uid, "first_at": last - MINUTE, "last_at": last},
    ]

    with reading(engine) as connection, rows_read(engine) as read:
        found = missed.recorded_in(connection, spans)

    assert found == [{late: SEVEN + 50 * HOUR}, {ids[-1]: last}]
    assert sum(read) == 2
