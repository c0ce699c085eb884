"""Few rows are read and written: by a tick, beside a missed span, and many at once."""

from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from models.bulk_sql import insert_all
from models.store.actions import missed, quarantined
from models.tables import action_cursor, revisions
from runtime.database import reading
from tests.factories import make_action, make_many, make_operation, rows_of, spans_of
from tests.statements import executed, rows_read
from tests.ticks import HOUR, MINUTE, run_tick
from tests.transactions import act, fetched

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


def test_a_tick_over_many_actions_reads_no_document(engine: sa.Engine) -> None:
    uids = make_many(engine, 50)
    with engine.begin() as connection:
        quarantined(connection, uids[0], "no reason")
        connection.execute(sa.update(action_cursor).values(next_occurrence_at=NOON))

    with executed(engine) as statements:
        report = run_tick(engine, NOON)

    assert report.decided == 50
    assert [one for one in statements if "document" in one] == []


SEVEN = datetime(2026, 1, 5, 7, tzinfo=UTC)
# A due date must lie ahead when its action is made.
LATER = datetime(2036, 1, 7, 7, tzinfo=UTC)
HOURLY = {"cron_rule": "0 * * * *", "timezone": "UTC"}


def test_what_is_sent_between_two_missed_ones_is_not_missed(engine: sa.Engine) -> None:
    """With catch-up `all`, the trigger with the longer look-back is sent within the span."""
    when = [{"cron_rule": "* * * * *"}, {"due_date": "2036-01-07T06:30:20Z"}]
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


SINCE = {"effective_from": sa.literal(NOON, revisions.c.effective_from.type)}
# Each of these breaks a text that is written by hand.
DOCUMENT = '{"name": "\\"é\\\\ \\u2028", "note": "' + "x" * 100_000 + '"}'


def test_long_documents_are_stored_as_they_are(engine: sa.Engine) -> None:
    uid = make_action(engine).uid
    plan = fetched(engine, sa.select(revisions.c.plan)).scalar_one()
    same = {"action_uid": uid, "document": DOCUMENT, "plan": plan, "author": "tests"}
    rows = [same | {"number": number} for number in (2, 3)]

    act(engine, insert_all, revisions, rows, SINCE)

    query = sa.select(revisions.c.document, revisions.c.effective_from)
    found = fetched(engine, query.where(revisions.c.number > 1)).all()
    assert [tuple(row) for row in found] == [(DOCUMENT, NOON)] * 2
