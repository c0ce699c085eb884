"""What ends an operation records and sends at once what is due by that, and never fails by it."""

from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.store.actions import cursors
from models.tables import actions
from scheduler.changes import Change
from scheduler.changes.editing import set_active
from scheduler.events.dependants import send_ended
from scheduler.on_demand.manual import run_now
from tests.factories import author, make_action, row_of, rows_of, spoil
from tests.integration.scheduler.test_after_actions import NOON, first, run
from tests.integration.scheduler.test_events import make_user
from tests.servers import Broker
from tests.ticks import MINUTE, tick_at
from tests.transactions import act, execute
from tests.virtual_clock import VirtualClock

pytestmark = pytest.mark.usefixtures("broker")


def follower(
    engine: sa.Engine, name: str = "publish", after: str = "refresh", **changes: Any
) -> Change:
    when = {"after": {"action": after}, **changes.pop("when", {})}
    return make_action(engine, since=NOON - MINUTE, name=name, when=when, **changes)


def ended(engine: sa.Engine, action: Change, **asked: Any) -> UUID:
    """Run an operation of an action as a worker does, up to what it sends after the end."""
    id, _ = run_now(engine, action.uid, "tests", **asked)
    send_ended(engine, run(engine, id))
    return id


@pytest.fixture(autouse=True)
def clock(engine: sa.Engine) -> VirtualClock:
    return VirtualClock(engine, NOON)


def test_a_chain_goes_on_without_a_tick_and_the_next_one_adds_nothing(
    engine: sa.Engine, broker: Broker, clock: VirtualClock
) -> None:
    one, two = first(engine), follower(engine)
    three = follower(engine, "mail", "publish")

    id = ended(engine, one)
    (second,) = rows_of(engine, two)
    send_ended(engine, run(engine, second["id"]))
    (third,) = rows_of(engine, three)

    assert (second["state"], second["event_id"]) == ("queued", f"{id} success")
    assert (third["state"], third["event_id"]) == ("queued", f"{second['id']} success")
    with broker.client() as client:
        assert client.llen("minutebook.quick") == 3
    tick_at(clock, NOON + MINUTE)
    assert [len(rows_of(engine, one)) for one in (two, three)] == [1, 1]


def test_what_is_due_later_is_left_to_the_tick(engine: sa.Engine) -> None:
    one, two = first(engine), follower(engine, when={"delay": "PT10M"})

    ended(engine, one)

    assert rows_of(engine, two) == []


def test_a_paused_dependant_is_not_due(engine: sa.Engine) -> None:
    one, two, three = first(engine), follower(engine), follower(engine, "mail")
    set_active(engine, two.uid, active=False, author=author())

    ended(engine, one)

    assert (len(rows_of(engine, two)), len(rows_of(engine, three))) == (0, 1)


def test_only_users_whom_the_dependant_selects(engine: sa.Engine) -> None:
    make_user(engine, "ann")
    make_user(engine, "ben")
    one = first(engine, when={"on": "order.paid"})
    two = follower(engine, recipients={"users": ["ann"]})

    for who in ("ann", "ben"):
        ended(engine, one, subject=who)

    assert [row["subject"] for row in rows_of(engine, two)] == ["ann"]


def test_a_broken_dependant_keeps_neither_the_end_nor_the_others(engine: sa.Engine) -> None:
    one, two, three = first(engine), follower(engine), follower(engine, "mail")
    act(engine, spoil, actions.c.uid == two.uid, plan='{"of": "another release"}')

    id = ended(engine, one)

    assert row_of(engine, id)["state"] == "success"
    assert act(engine, cursors.seen, [two.uid])[two.uid].quarantined
    assert len(rows_of(engine, three)) == 1


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_a_dependant_in_a_change_is_left_to_a_tick(engine: sa.Engine, clock: VirtualClock) -> None:
    one, two, three = first(engine), follower(engine), follower(engine, "mail")
    with engine.begin() as connection:
        cursors.lock(connection, two.uid)
        ended(engine, one)
    before = (len(rows_of(engine, two)), len(rows_of(engine, three)))

    tick_at(clock, NOON + MINUTE)

    assert before == (0, 1)
    assert (len(rows_of(engine, two)), len(rows_of(engine, three))) == (1, 1)


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_what_cannot_be_recorded_is_left_to_a_tick(engine: sa.Engine, clock: VirtualClock) -> None:
    one, two = first(engine), follower(engine)
    id, _ = run_now(engine, one.uid, "tests")
    result = run(engine, id)
    execute(engine, sa.text("ALTER TABLE action_cursor RENAME TO gone"))

    send_ended(engine, result)
    execute(engine, sa.text("ALTER TABLE gone RENAME TO action_cursor"))
    before = rows_of(engine, two)
    tick_at(clock, NOON + MINUTE)

    assert (before, len(rows_of(engine, two))) == ([], 1)
