"""Missed spans are counted when they are read: by their revision, without what has an operation."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from models.store.actions import missed
from models.store.notices.alerting import NO_ALERTS
from models.store.operations.record import record_new
from models.tables import missed_spans
from runtime.database import reading
from scheduler.changes import Change, change
from scheduler.record import ActionRef, operation_row
from scheduler.sweep import Sweeper
from scheduler.tick import TickReport, tick
from tests.factories import (
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
    return tick(engine, now, Sweeper(timedelta(seconds=45), NO_ALERTS))


@pytest.fixture
def slept(engine: sa.Engine) -> Change:
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


def test_what_is_run_later_is_no_longer_missed(engine: sa.Engine, slept: Change) -> None:
    before = count_of(engine)
    for hour in (0, 3, 19):
        make_operation(engine, slept, SEVEN + hour * HOUR)

    assert (before, count_of(engine)) == (20, 17)


def test_an_operation_at_another_instant_of_the_span_changes_nothing(
    engine: sa.Engine, slept: Change
) -> None:
    make_operation(engine, slept, SEVEN + 90 * MINUTE)

    assert count_of(engine) == 20


def test_a_manual_run_at_the_second_of_an_occurrence_changes_nothing(
    engine: sa.Engine, slept: Change
) -> None:
    ref = ActionRef(slept.uid, 1, slept.name, slept.revision)
    at = SEVEN + HOUR
    with engine.begin() as connection:
        row = operation_row(ref, slept.plan, uuid4(), at, caused_by("Manual run by ann"))
        record_new(connection, [row])

    assert count_of(engine) == 20


def test_a_span_counts_by_its_own_revision(engine: sa.Engine, slept: Change) -> None:
    change.apply_all(engine, [make_document(when=EVERY_MINUTE)], author())

    assert count_of(engine) == 20


def test_a_part_of_a_span_is_counted(engine: sa.Engine, slept: Change) -> None:
    make_operation(engine, slept, SEVEN + HOUR)
    make_operation(engine, slept, SEVEN + 10 * HOUR)

    with reading(engine) as connection:
        (span,) = missed.spans(connection)
        counts = [missed.count(connection, span, SEVEN + hours * HOUR) for hours in (-1, 0, 9, 19)]
    assert counts == [18, 17, 9, 0]


def test_a_span_of_a_broken_plan_keeps_the_count_of_its_tick(
    engine: sa.Engine, slept: Change
) -> None:
    make_operation(engine, slept, SEVEN)
    with engine.begin() as connection:
        its = sa.text("UPDATE revisions SET plan = :plan")
        connection.execute(its, {"plan": '{"active": true}'})

    assert count_of(engine) == 20


def test_the_stored_count_is_not_read_for_a_rule(engine: sa.Engine, slept: Change) -> None:
    set_on(engine, missed_spans, count=7)

    assert count_of(engine) == 20


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
