"""Missed spans count what has no operation."""

from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from models.store.actions import missed
from runtime.database import reading
from tests.factories import make_action, make_operation, rows_of, spans_of
from tests.statements import rows_read
from tests.ticks import HOUR, MINUTE, run_tick

SEVEN = datetime(2026, 1, 5, 7, tzinfo=UTC)
# A due date must lie ahead when its action is made.
LATER = datetime(2036, 1, 7, 7, tzinfo=UTC)
HOURLY = {"cron_rule": "0 * * * *", "timezone": "UTC"}
EVERY_MINUTE = {"cron_rule": "* * * * *", "timezone": "UTC"}


def test_what_is_sent_between_two_missed_ones_is_not_missed(engine: sa.Engine) -> None:
    """With catch-up `all`, the trigger with the longer look-back is sent within the span."""
    due_date = {"due_date": "2036-01-07T06:30:20", "timezone": "UTC"}
    when = [EVERY_MINUTE, due_date]
    action = make_action(engine, when=when, policy={"catch_up": "all"}, since=LATER - HOUR)

    report = run_tick(engine, LATER)

    states = [row["state"] for row in rows_of(engine, action)]
    ((_, count), *_) = spans_of(engine)
    assert len(states) + count == 61
    assert report.missed == states.count("missed") + count


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
