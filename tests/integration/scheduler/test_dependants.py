"""What ends an operation records and sends at once what is due by that, and never fails by it."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.operation import OperationState
from models.store.actions import cursors
from models.store.operations.end import EndResult, Outcome
from models.store.operations.take import Claim
from models.tables import action_cursor, actions, operations
from runtime.config import Settings
from runtime.database import make_engine, reading
from scheduler.changes import Change
from scheduler.changes.editing import set_active
from scheduler.events.dependants import send_ended
from scheduler.on_demand.manual import run_now
from tests.factories import author, make_action, rows_of, spoil
from tests.integration.scheduler.test_events import make_user
from tests.servers import Broker
from tests.ticks import MINUTE, tick_at
from tests.transactions import act, claim_as, execute, finish
from tests.virtual_clock import VirtualClock

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
YEARLY = {"cron_rule": "0 3 1 1 *", "timezone": "UTC"}
SUCCESS = OperationState.SUCCESS

pytestmark = pytest.mark.usefixtures("broker")


def first(engine: sa.Engine, **changes: Any) -> Change:
    return make_action(engine, **{"name": "refresh", "when": YEARLY, **changes})


def follower(
    engine: sa.Engine, name: str = "publish", after: str = "refresh", **changes: Any
) -> Change:
    when = {"after": {"action": after}, **changes.pop("when", {})}
    return make_action(engine, since=NOON - MINUTE, name=name, when=when, **changes)


def ended(engine: sa.Engine, action: Change, **asked: Any) -> UUID:
    id, _ = run_now(engine, action.uid, "tests", **asked)
    run(engine, id)
    return id


def run(engine: sa.Engine, id: UUID) -> None:
    """Run an operation as a worker does, up to what it sends after the end."""
    send_ended(engine, run_to_end(engine, id))


def run_to_end(engine: sa.Engine, id: UUID) -> EndResult:
    assert isinstance(claim_as(engine, id, 1, "worker"), Claim)
    return finish(engine, id, Outcome(SUCCESS))


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
    run(engine, second["id"])
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

    with reading(engine) as connection:
        state = connection.execute(sa.select(operations.c.state).where(operations.c.id == id))
        row = cursors.seen(connection, [two.uid])[two.uid]
        assert state.scalar_one() == SUCCESS
    assert row.quarantined
    assert len(rows_of(engine, three)) == 1


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_a_dependant_that_is_being_changed_is_left_to_the_tick(
    engine: sa.Engine, settings: Settings, clock: VirtualClock
) -> None:
    one, two, three = first(engine), follower(engine), follower(engine, "mail")
    other = make_engine(settings)
    with other.begin() as connection:
        its = action_cursor.c.action_uid == two.uid
        connection.execute(sa.select(action_cursor).where(its).with_for_update())
        ended(engine, one)
    other.dispose()
    before = (len(rows_of(engine, two)), len(rows_of(engine, three)))

    tick_at(clock, NOON + MINUTE)

    assert before == (0, 1)
    assert (len(rows_of(engine, two)), len(rows_of(engine, three))) == (1, 1)


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_what_cannot_be_recorded_is_left_to_the_tick(
    engine: sa.Engine, clock: VirtualClock
) -> None:
    one, two = first(engine), follower(engine)
    id, _ = run_now(engine, one.uid, "tests")
    result = run_to_end(engine, id)
    rename(engine, "action_cursor", "gone")

    send_ended(engine, result)
    rename(engine, "gone", "action_cursor")
    before = rows_of(engine, two)
    tick_at(clock, NOON + MINUTE)

    assert (before, len(rows_of(engine, two))) == ([], 1)


def rename(engine: sa.Engine, table: str, name: str) -> None:
    execute(engine, sa.text(f"ALTER TABLE {table} RENAME TO {name}"))
