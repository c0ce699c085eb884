"""Small apps that share a queue take turns; an app that is alone has all of it."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
import sqlalchemy as sa

from minutebook.steps import SmallApp
from models.operation import OperationState
from models.sql import read_clock
from models.store import presence, ticks
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import outbox, turns, unstarted
from models.store.operations.admission import NotClaimed
from models.store.operations.claims import Claim, claim
from models.store.operations.finish import Ending, end
from models.store.operations.outbox import Message
from models.store.scope import WHOLE_INSTALLATION
from models.tables import operations as operations_table
from models.turns import Sharing
from runtime.config import Settings
from runtime.database import reading
from scheduler.changes import editing
from scheduler.changes.change import Changed
from scheduler.dispatch import dispatch_ready
from scheduler.on_demand.cancel import cancel
from scheduler.sweep import Sweeper
from tasks.execute import run_attempt
from tasks.registry import Registry
from tests.factories import (
    DEFAULT_APP,
    STEPS,
    author,
    claimed,
    make_action,
    make_app,
    make_operation,
    row_of,
    update_operation,
)
from tests.servers import Broker

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
FREELY = {"overlap": "allow"}


@pytest.fixture
def busy(engine: sa.Engine) -> Changed:
    """An action of the app `default` whose operations may overlap."""
    return make_action(engine, name="busy", policy=FREELY)


@pytest.fixture
def other(engine: sa.Engine) -> SmallApp:
    """Another small app with an action of its own."""
    app = make_app(engine, "other")
    make_action(engine, app=app, name="its own", policy=FREELY)
    return app


def make_worker(engine: sa.Engine, slots: int) -> None:
    with engine.begin() as connection:
        presence.worker_seen(connection, presence.Seen("quick@here:1", "quick", 1, slots=slots))


def make_operations(
    engine: sa.Engine, action: Changed, count: int, app: SmallApp = DEFAULT_APP
) -> list[UUID]:
    """Record operations, oldest first, which their recorder has reserved."""
    return [
        make_operation(engine, action, NOON + number * MINUTE, app=app) for number in range(count)
    ]


def messages_of(engine: sa.Engine, ids: Sequence[UUID]) -> list[Message]:
    rows = [row_of(engine, id) for id in ids]
    return [Message(row["id"], row["attempt"], row["task"], row["queue"]) for row in rows]


def admitted(engine: sa.Engine, ids: Sequence[UUID], reserve: int = 0) -> list[UUID]:
    """Return which operations may be sent now, as they are after it was asked."""
    messages = messages_of(engine, ids)
    with engine.begin() as connection:
        return [one.id for one in turns.admit(connection, messages, Sharing.APPS, reserve)]


def started_on(engine: sa.Engine, id: UUID, worker: str) -> None:
    with engine.begin() as connection:
        assert isinstance(claim(connection, id, 1, worker, alerts=NO_ALERTS), Claim)


def after_end(engine: sa.Engine, id: UUID) -> list[UUID]:
    """End an operation; return which ones have their turn then."""
    with engine.begin() as connection:
        ended = end(connection, id, 1, Ending(OperationState.SUCCESS), alerts=NO_ALERTS)
    with engine.begin() as connection:
        return [one.id for one in turns.give_after(connection, ended.lane)] if ended.lane else []


def turns_of(engine: sa.Engine, ids: Sequence[UUID]) -> list[str | None]:
    return [row_of(engine, id)["turn"] for id in ids]


def in_broker(broker: Broker, queue: str = "minutebook.quick") -> int:
    with broker.client() as client:
        return int(client.llen(queue))


def all_due(engine: sa.Engine) -> None:
    """Age what is reserved or waits, by hand."""
    long_ago = NOON - timedelta(days=365)
    with engine.begin() as connection:
        connection.execute(sa.update(operations_table).values(not_before=long_ago))


def sharing(engine: sa.Engine) -> Sharing:
    with reading(engine) as connection:
        return turns.sharing(connection)


def test_apps_share_once_a_second_one_has_an_active_action(engine: sa.Engine) -> None:
    make_action(engine, name="busy")
    assert sharing(engine) is Sharing.NONE
    app = make_app(engine, "other")
    make_action(engine, app=app, name="given", owner="minutebook")
    assert sharing(engine) is Sharing.NONE
    action = make_action(engine, app=app, name="its own")
    assert sharing(engine) is Sharing.APPS
    editing.set_active(engine, action.uid, active=False, author=author(STEPS, app))
    assert sharing(engine) is Sharing.NONE


def test_an_app_alone_sends_everything(engine: sa.Engine, busy: Changed, broker: Broker) -> None:
    make_worker(engine, 2)
    make_operations(engine, busy, 30)
    all_due(engine)

    assert dispatch_ready(engine).count == 30
    assert in_broker(broker) == 30


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_an_app_among_others_borrows_what_they_do_not_use(
    engine: sa.Engine, busy: Changed, other: SmallApp, broker: Broker, slots: int
) -> None:
    make_worker(engine, slots)
    ids = make_operations(engine, busy, 8)
    all_due(engine)

    assert dispatch_ready(engine).count == slots
    assert in_broker(broker) == slots
    assert turns_of(engine, ids) == ["taken"] * slots + ["waits"] * (8 - slots)
    assert row_of(engine, ids[-1])["reason"] == turns.WAITS


@pytest.mark.parametrize(("reserve", "share"), [(1, 3), (3, 1), (9, 1)])
def test_a_reserve_is_kept_free_for_the_other_apps(
    engine: sa.Engine, busy: Changed, other: SmallApp, reserve: int, share: int
) -> None:
    make_worker(engine, 4)
    mine = make_action(engine, app=other, name="mine", policy=FREELY)
    ours = make_operations(engine, busy, 8)
    theirs = make_operations(engine, mine, 1, other)

    assert admitted(engine, ours, reserve) == ours[:share]
    assert admitted(engine, theirs, reserve) == theirs


def test_a_process_that_becomes_free_goes_to_the_app_with_the_fewest(
    engine: sa.Engine, busy: Changed, other: SmallApp
) -> None:
    make_worker(engine, 4)
    mine = make_action(engine, app=other, name="mine", policy=FREELY)
    ours = make_operations(engine, busy, 8)
    assert admitted(engine, ours) == ours[:4]
    for id in ours[:4]:
        started_on(engine, id, "quick@here:1:7")
    theirs = make_operations(engine, mine, 4, other)
    # The next process that becomes free takes it; further ones wait for another.
    assert admitted(engine, theirs) == theirs[:1]
    started_on(engine, theirs[0], "quick@here:1:8")
    assert after_end(engine, ours[0]) == []

    assert after_end(engine, ours[1]) == theirs[1:2]
    started_on(engine, theirs[1], "quick@here:1:8")
    assert after_end(engine, theirs[0]) == theirs[2:3]
    started_on(engine, theirs[2], "quick@here:1:8")
    assert after_end(engine, ours[2]) == ours[4:5]


def test_an_end_on_one_queue_of_a_worker_gives_a_turn_on_the_others(
    engine: sa.Engine, other: SmallApp
) -> None:
    with engine.begin() as connection:
        seen = presence.Seen("both@here:1", "quick,heavy", 1, slots=1)
        presence.worker_seen(connection, seen)
    slow = make_action(engine, name="slow", policy={**FREELY, "queue": "heavy"})
    quick = make_action(engine, name="quick", policy=FREELY)
    held, ids = make_operations(engine, slow, 1), make_operations(engine, quick, 2)
    assert admitted(engine, held) == held
    started_on(engine, held[0], "both@here:1:7")
    assert admitted(engine, ids) == []

    assert after_end(engine, held[0]) == ids[:1]


def test_another_app_s_message_is_behind_none_that_waits(
    engine: sa.Engine, busy: Changed, other: SmallApp
) -> None:
    mine = make_action(engine, app=other, name="mine", policy=FREELY)
    admitted(engine, make_operations(engine, busy, 8))
    theirs = make_operations(engine, mine, 2, other)

    assert admitted(engine, theirs) == theirs[:1]


def test_the_oldest_goes_first_whoever_asks(
    engine: sa.Engine, busy: Changed, other: SmallApp
) -> None:
    ids = make_operations(engine, busy, 3)
    assert admitted(engine, ids[:1]) == ids[:1]
    assert admitted(engine, ids[1:2]) == []
    with engine.begin() as connection:
        unstarted.cancel(connection, ids[0], "cancelled")

    assert admitted(engine, ids[2:]) == ids[1:2]


def test_an_operation_with_its_turn_may_be_sent_again(
    engine: sa.Engine, busy: Changed, other: SmallApp
) -> None:
    ids = make_operations(engine, busy, 2)

    assert admitted(engine, ids) == ids[:1]
    assert admitted(engine, ids) == ids[:1]


def test_an_operation_that_moved_meanwhile_neither_waits_nor_is_sent(
    engine: sa.Engine, busy: Changed, other: SmallApp
) -> None:
    (id,) = make_operations(engine, busy, 1)
    messages = messages_of(engine, [id])
    update_operation(engine, id, attempt=2)

    with engine.begin() as connection:
        assert turns.admit(connection, messages) == []
    assert turns_of(engine, [id]) == [None]


@pytest.mark.parametrize(
    "state", [OperationState.SUCCESS, OperationState.FAILED, OperationState.PENDING], ids=str
)
def test_an_end_names_the_queue_on_which_another_waits(
    engine: sa.Engine, busy: Changed, other: SmallApp, state: OperationState
) -> None:
    ids = make_operations(engine, busy, 2)
    admitted(engine, ids)
    with engine.begin() as connection:
        assert isinstance(claim(connection, ids[0], 1, "tests", alerts=NO_ALERTS), Claim)
    assert turns_of(engine, ids) == ["taken", "waits"]

    with engine.begin() as connection:
        ended = end(connection, ids[0], 1, Ending(state), alerts=NO_ALERTS)
    with engine.begin() as connection:
        assert ended.lane == (DEFAULT_APP.id, "quick")
        assert [one.id for one in turns.give_after(connection, ended.lane)] == ids[1:]
    assert turns_of(engine, ids) == [None, "taken"]


def test_an_end_behind_which_nothing_waits_names_no_queue(engine: sa.Engine, busy: Changed) -> None:
    (id,) = make_operations(engine, busy, 1)
    with engine.begin() as connection:
        claim(connection, id, 1, "tests", alerts=NO_ALERTS)
        assert end(connection, id, 1, Ending(OperationState.SUCCESS), alerts=NO_ALERTS).lane is None


def test_a_worker_sends_the_next_one_when_it_ends_one(
    engine: sa.Engine, settings: Settings, busy: Changed, other: SmallApp, broker: Broker
) -> None:
    ids = make_operations(engine, busy, 3)
    all_due(engine)
    dispatch_ready(engine)

    for number in (1, 2, 3):
        assert in_broker(broker) == number
        assert run_attempt(engine, settings, Registry(), (ids[number - 1], 1), "tests") == "success"


def test_a_worker_sends_the_next_one_when_one_does_not_start(
    engine: sa.Engine, settings: Settings, busy: Changed, other: SmallApp, broker: Broker
) -> None:
    ids = make_operations(engine, busy, 2)
    all_due(engine)
    dispatch_ready(engine)
    with engine.begin() as connection:
        unstarted.cancel(connection, ids[0], "cancelled")

    assert run_attempt(engine, settings, Registry(), (ids[0], 1), "tests") == "taken"
    assert in_broker(broker) == 2


def test_one_that_is_cancelled_gives_its_turn_to_the_next(
    engine: sa.Engine, busy: Changed, other: SmallApp, broker: Broker
) -> None:
    ids = make_operations(engine, busy, 2)
    all_due(engine)
    dispatch_ready(engine)
    assert row_of(engine, ids[1])["turn"] == "waits"

    cancel(engine, ids[0], WHOLE_INSTALLATION, "ann")

    assert (row_of(engine, ids[1])["turn"], in_broker(broker)) == ("taken", 2)


@pytest.mark.parametrize(
    ("overlap", "outcome"), [("skip", NotClaimed.SKIPPED), ("replace", NotClaimed.WAITS)]
)
def test_the_overlap_policy_decides_at_once_by_a_process_of_the_reserve(
    engine: sa.Engine, other: SmallApp, overlap: str, outcome: NotClaimed
) -> None:
    make_worker(engine, 2)
    action = make_action(engine, policy={"overlap": overlap})
    ids = [
        make_operation(engine, action, NOON + number * MINUTE, "Scheduled action")
        for number in range(2)
    ]
    admitted(engine, ids[:1], reserve=1)
    started_on(engine, ids[0], "quick@here:1:7")

    assert admitted(engine, ids[1:], reserve=1) == ids[1:]
    assert claimed(engine, ids[1]) == outcome
    assert turns_of(engine, ids) == ["taken", None]
    is_replaced = row_of(engine, ids[0])["cancel_requested_at"] is not None
    assert is_replaced == (overlap == "replace")


def test_one_that_waits_for_its_turn_may_be_claimed_by_an_earlier_message(
    engine: sa.Engine, busy: Changed, other: SmallApp
) -> None:
    ids = make_operations(engine, busy, 2)
    admitted(engine, ids)

    with engine.begin() as connection:
        assert isinstance(claim(connection, ids[1], 1, "tests", alerts=NO_ALERTS), Claim)
    assert turns_of(engine, ids) == ["taken", "taken"]
    assert row_of(engine, ids[1])["reason"] is None


def test_the_sweep_gives_the_turns_that_are_free(
    engine: sa.Engine, busy: Changed, other: SmallApp, broker: Broker
) -> None:
    ids = make_operations(engine, busy, 6)
    admitted(engine, ids)
    make_worker(engine, 4)

    with reading(engine) as connection:
        assert ticks.look(connection, None, MINUTE, timedelta(hours=1)).has_to_sweep
    assert Sweeper(MINUTE, NO_ALERTS).sweep(engine, send=True).released == 3
    assert turns_of(engine, ids) == ["taken"] * 4 + ["waits"] * 2
    assert in_broker(broker) == 3


def test_the_sweep_sends_all_once_the_app_is_alone(
    engine: sa.Engine, busy: Changed, other: SmallApp, broker: Broker
) -> None:
    ids = make_operations(engine, busy, 6)
    admitted(engine, ids)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE actions SET active = false WHERE name = 'its own'"))

    Sweeper(MINUTE, NO_ALERTS).sweep(engine, send=True)

    assert in_broker(broker) == 5
    assert "waits" not in turns_of(engine, ids)


def test_what_waits_is_asked_about_again_whatever_is_lost(
    engine: sa.Engine, busy: Changed, other: SmallApp
) -> None:
    ids = make_operations(engine, busy, 3)
    admitted(engine, ids)

    with reading(engine) as connection:
        later = read_clock(connection) + turns.ASKED_AGAIN
    assert all(row_of(engine, id)["not_before"] <= later for id in ids)
    all_due(engine)
    with engine.begin() as connection:
        assert {one.id for one in outbox.reserve_sendable(connection, 10)} == set(ids)


def test_no_two_processes_give_one_turn_twice(
    engine: sa.Engine, busy: Changed, other: SmallApp
) -> None:
    make_worker(engine, 4)
    ids = make_operations(engine, busy, 24)

    with ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(lambda first: admitted(engine, ids[first : first + 3]), range(0, 24, 3))
        )

    assert sum(map(len, found)) == 4
    assert turns_of(engine, ids).count("taken") == 4
