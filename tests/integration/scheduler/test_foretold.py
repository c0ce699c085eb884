"""What explanations and dry runs foretell equals the outcome."""

from datetime import UTC, datetime
from typing import Any

import pytest
import sqlalchemy as sa

from models.store.people import events
from scheduler.changes import change, editing
from tests.factories import author, make_action, make_document, rows_of
from tests.integration.scheduler.test_events import make_user
from tests.ticks import HOUR, MINUTE, tick_at
from tests.transactions import why
from tests.virtual_clock import VirtualClock

MONDAY = datetime(2027, 1, 4, tzinfo=UTC)
HOURLY = {"cron_rule": "0 * * * *", "timezone": "UTC"}


@pytest.fixture
def clock(engine: sa.Engine) -> VirtualClock:
    return VirtualClock(engine, MONDAY)


def test_a_dry_run_foretells_what_events_make_due(engine: sa.Engine, clock: VirtualClock) -> None:
    on_paid: dict[str, Any] = {
        "name": "paid",
        "when": {"on": "order.paid"},
        "policy": {"look_back": "PT5M"},
    }
    action = make_action(engine, **on_paid)
    make_user(engine, "ann")
    tick_at(clock, MONDAY + MINUTE)
    clock.set(MONDAY + HOUR)
    with engine.begin() as connection:
        for minutes in (2, 3, 30):
            at = MONDAY + HOUR - minutes * MINUTE
            events.add(connection, 1, "order.paid", str(minutes), "ann", at)

    paused = make_document(**on_paid, active=False)
    (foreseen,) = change.apply_all(engine, [paused], author(), dry_run=True)
    change.apply_all(engine, [paused], author())

    rows = rows_of(engine, action)
    assert list(foreseen.sent) == [r["occurrence_at"] for r in rows if r["state"] == "queued"]
    assert (len(foreseen.sent), foreseen.missed, len(rows)) == (2, 1, 3)


def test_a_pause_is_told_from_its_beginning_whatever_was_edited_since(
    engine: sa.Engine, clock: VirtualClock
) -> None:
    action = make_action(engine, name="one", when=HOURLY)
    clock.set(MONDAY + MINUTE)
    editing.set_active(engine, action.uid, active=False, author=author())
    for hour in (3, 4):
        clock.set(MONDAY + hour * HOUR)
        edited = make_document(name="one", when=HOURLY, active=False, description=str(hour))
        change.apply_all(engine, [edited], author())

    found = why(engine, action, MONDAY + 9 * HOUR)

    assert found.verdict == "paused"
    assert found.text == "paused under revision 4 of 2027-01-04T04:00:00Z by tests"


def test_more_than_a_tick_sends_are_foretold_as_sent(
    engine: sa.Engine, clock: VirtualClock
) -> None:
    policy = {"catch_up": "all", "look_back": "P2D"}
    every_minute = {"cron_rule": "* * * * *", "timezone": "UTC"}
    action = make_action(engine, when=every_minute, policy=policy)
    clock.set(MONDAY + 1_500 * MINUTE)

    found = why(engine, action, MONDAY + 1_200 * MINUTE)

    assert (found.verdict, "is due and would be sent" in found.text) == ("undecided", True)


@pytest.mark.parametrize(("end", "hour"), [("starts_at", 1), ("ends_at", 9)])
def test_what_only_the_ends_of_an_action_leave_out_says_so(
    engine: sa.Engine, clock: VirtualClock, end: str, hour: int
) -> None:
    five = (MONDAY + 5 * HOUR).isoformat()
    action = make_action(engine, when=HOURLY, policy={end: five})

    found = why(engine, action, MONDAY + hour * HOUR)

    told = "the rule names it, but policy.starts_at or policy.ends_at leaves it out"
    assert (found.verdict, found.text) == ("not_an_occurrence", told)
