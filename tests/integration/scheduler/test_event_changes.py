"""Events that become known between two ticks, or while their action changes."""

from datetime import UTC, datetime
from typing import Any

import pytest
import sqlalchemy as sa

from models.store.people import events, users
from models.users import parse_users
from scheduler.changes.change import apply_all
from scheduler.changes.deletion import delete
from tests.factories import author, make_action, make_document, rows_of
from tests.integration.scheduler.test_events import make_user
from tests.ticks import MINUTE, SECOND, tick_at
from tests.transactions import act, why
from tests.virtual_clock import VirtualClock

NOON = datetime(2027, 1, 4, 11, 40, tzinfo=UTC)
PAID = {"on": "order.paid"}


@pytest.fixture
def clock(engine: sa.Engine) -> VirtualClock:
    """The clock of the engine's database, a little before noon, and a user."""
    make_user(engine, "ann")
    return VirtualClock(engine, NOON - 60 * MINUTE)


def become_known(engine: sa.Engine, at: datetime) -> None:
    act(engine, events.add, 1, "order.paid", at.isoformat(), "ann", at)


def on_paid(**policy: str) -> dict[str, Any]:
    return {"name": "paid", "when": PAID, "policy": policy}


@pytest.mark.parametrize("look_back", ["PT10M", "PT3M"])
def test_a_change_of_the_look_back_alone_loses_no_event_on_its_way(
    engine: sa.Engine, clock: VirtualClock, look_back: str
) -> None:
    action = make_action(engine, **on_paid(look_back="PT5M"))
    tick_at(clock, NOON)
    clock.set(NOON + SECOND)
    apply_all(engine, [make_document(**on_paid(look_back=look_back))], author())
    clock.set(NOON + 2 * SECOND)
    become_known(engine, NOON - 2 * SECOND)

    tick_at(clock, NOON + MINUTE)

    assert [row["state"] for row in rows_of(engine, action)] == ["queued"]


def test_a_longer_look_back_runs_no_late_event(engine: sa.Engine, clock: VirtualClock) -> None:
    action = make_action(engine, **on_paid(look_back="PT5M"))
    tick_at(clock, NOON)
    become_known(engine, NOON - 20 * MINUTE)
    apply_all(engine, [make_document(**on_paid(look_back="P1D"))], author())

    tick_at(clock, NOON + MINUTE)

    assert rows_of(engine, action) == []


@pytest.mark.parametrize("is_deleted", [False, True], ids=["delayed", "deleted"])
def test_an_event_that_became_known_after_a_change_has_no_record(
    engine: sa.Engine, clock: VirtualClock, is_deleted: bool
) -> None:
    action = make_action(engine, **on_paid(look_back="PT5M"))
    tick_at(clock, NOON)
    clock.set(NOON + SECOND)
    if is_deleted:
        delete(engine, action.uid, author())
    else:
        later = {"after": "order.paid", "delay": "PT1H"}
        apply_all(engine, [make_document(name="paid", when=later)], author())
    clock.set(NOON + 3 * SECOND)
    become_known(engine, NOON - 2 * SECOND)
    tick_at(clock, NOON + MINUTE)

    found = why(engine, action, NOON - 2 * SECOND)

    assert found.verdict == "unrecorded"
    assert "by what was known then it was not due" in found.text


def test_a_second_of_a_missed_span_at_which_nobody_was_due_is_no_occurrence(
    engine: sa.Engine, clock: VirtualClock
) -> None:
    action = make_action(engine, **on_paid(look_back="PT5M"))
    tick_at(clock, NOON - 50 * MINUTE)
    for minute in range(20, 45):
        become_known(engine, NOON - minute * MINUTE)
    tick_at(clock, NOON)

    asked = [NOON - 40 * MINUTE, NOON - 40 * MINUTE + SECOND]
    found = [why(engine, action, at).verdict for at in asked]
    assert found == ["missed", "not_an_occurrence"]


def stored(engine: sa.Engine, **given: Any) -> None:
    act(engine, users.import_users, 1, parse_users([{"id": "ann", "email": "ann@x.org", **given}]))


def test_a_user_may_become_a_recipient_in_time(engine: sa.Engine, clock: VirtualClock) -> None:
    stored(engine, active=False)
    action = make_action(engine, **on_paid(look_back="PT5M"))
    clock.set(NOON - 2 * SECOND)
    become_known(engine, NOON - 2 * SECOND)
    tick_at(clock, NOON)
    stored(engine, active=True)
    tick_at(clock, NOON + MINUTE)

    assert [row["subject"] for row in rows_of(engine, action)] == ["ann"]


def test_an_event_after_a_change_by_a_clock_a_little_ahead_is_not_lost(
    engine: sa.Engine, clock: VirtualClock
) -> None:
    tick_at(clock, NOON + 4 * MINUTE)
    action = make_action(engine, **on_paid(look_back="PT5M"))
    tick_at(clock, NOON + 4 * MINUTE + SECOND)
    tick_at(clock, NOON)
    clock.set(NOON + MINUTE)
    become_known(engine, NOON + MINUTE)

    tick_at(clock, NOON + 2 * MINUTE)

    assert [row["state"] for row in rows_of(engine, action)] == ["queued"]
