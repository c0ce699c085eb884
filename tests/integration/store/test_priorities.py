"""Among operations of a small app that wait, the one with the higher priority goes first."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from minutebook.steps import SmallApp
from models.operation import OperationState
from models.sql import database_now, read_clock
from models.store import presence
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import jobs, turns, unstarted
from models.store.operations.admission import WAITS
from models.store.operations.claims import Claim, claim
from models.store.operations.finish import Ending, end
from models.store.operations.outbox import Message
from models.store.scope import WHOLE_INSTALLATION
from models.tables import operations
from models.turns import Sharing
from runtime.config import Settings
from runtime.database import reading
from scheduler.changes import deletion, editing
from scheduler.changes.change import Changed
from scheduler.dispatch import dispatch_ready
from scheduler.on_demand.restart import retry
from scheduler.sweep import Sweeper
from tasks.execute import run_attempt
from tasks.registry import Registry
from tests.factories import (
    DEFAULT_APP,
    STEPS,
    author,
    make_action,
    make_app,
    make_document,
    make_operation,
    row_of,
    update_operation,
)
from tests.servers import Broker

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
JOB = {"job": {"url": "https://example.com/feed"}}


def make_prioritised(
    engine: sa.Engine, priority: int, app: SmallApp = DEFAULT_APP, **changes: Any
) -> Changed:
    """Return an action of that priority whose operations may overlap."""
    policy = {"overlap": "allow", "priority": priority}
    return make_action(engine, app=app, name=f"at {priority}", policy=policy, **changes)


def make_waiting(engine: sa.Engine, *priorities: int, hours: Sequence[int] = ()) -> dict[int, UUID]:
    """Record one operation for each priority, aged by `hours`, and let all wait for their turns."""
    found = {}
    for number, priority in enumerate(priorities):
        action = make_prioritised(engine, priority)
        id = make_operation(engine, action, NOON + number * MINUTE)
        found[priority] = id
        hour = timedelta(hours=hours[number]) if hours else number * timedelta(milliseconds=-5)
        aged = {name: row_of(engine, id)[name] - hour for name in ("recorded_at", "ranked_at")}
        update_operation(engine, id, turn="waits", **aged)
    return found


def give_one(engine: sa.Engine) -> UUID:
    """Return the operation that gets the turn of the only process, and end it."""
    with engine.begin() as connection:
        (message,) = turns.give_after(connection, (DEFAULT_APP.id, "quick"))
    with engine.begin() as connection:
        unstarted.cancel(connection, message.id, "tests")
    return message.id


def in_order(engine: sa.Engine, found: dict[int, UUID]) -> list[int]:
    by_id = {id: priority for priority, id in found.items()}
    return [by_id[give_one(engine)] for _ in found]


def all_due(engine: sa.Engine) -> None:
    """Age what is reserved or waits, by hand."""
    with engine.begin() as connection:
        connection.execute(sa.update(operations).values(not_before=database_now(-1.0)))


def sharing(engine: sa.Engine) -> Sharing:
    with reading(engine) as connection:
        return turns.sharing(connection)


def test_operations_take_turns_while_an_active_action_has_a_priority(engine: sa.Engine) -> None:
    make_action(engine)
    assert sharing(engine) is Sharing.NONE
    urgent = make_prioritised(engine, 10)
    assert sharing(engine) is Sharing.PRIORITY
    editing.set_active(engine, urgent.uid, active=False, author=author(STEPS))
    assert sharing(engine) is Sharing.NONE
    editing.set_active(engine, urgent.uid, active=True, author=author(STEPS))
    deletion.delete(engine, urgent.uid, author=author(STEPS))
    assert sharing(engine) is Sharing.NONE


def test_the_highest_priority_goes_first(engine: sa.Engine) -> None:
    found = make_waiting(engine, -1, 0, 100, 7, -100)

    assert in_order(engine, found) == [100, 7, 0, -1, -100]


def test_the_oldest_of_one_priority_goes_first(engine: sa.Engine) -> None:
    action = make_prioritised(engine, 5)
    ids = [make_operation(engine, action, NOON - number * MINUTE) for number in range(3)]
    for number, id in enumerate(ids):
        ranked_at = row_of(engine, id)["ranked_at"] + number * timedelta(seconds=1)
        update_operation(engine, id, turn="waits", ranked_at=ranked_at)

    assert [give_one(engine) for _ in ids] == ids


def test_an_hour_of_waiting_counts_as_a_point(engine: sa.Engine) -> None:
    found = make_waiting(engine, 5, 0, -3, hours=[0, 6, 7])

    assert in_order(engine, found) == [0, 5, -3]


def test_a_priority_puts_no_small_app_before_another(engine: sa.Engine) -> None:
    other = make_app(engine, "other")
    ours = make_operation(engine, make_action(engine, policy={"overlap": "allow"}), NOON)
    urgent = make_prioritised(engine, 100, app=other)
    theirs = [make_operation(engine, urgent, NOON + n * MINUTE, app=other) for n in range(3)]
    messages = [Message(id, 1, "a task", "quick") for id in [*theirs, ours]]

    with engine.begin() as connection:
        sent = turns.admit(connection, messages, Sharing.APPS)

    assert len(sent) == 2
    assert ours in {one.id for one in sent}


def test_a_saturated_worker_gets_the_highest_next(
    engine: sa.Engine, settings: Settings, broker: Broker
) -> None:
    bulk, urgent = make_prioritised(engine, -10), make_prioritised(engine, 10)
    with engine.begin() as connection:
        presence.worker_seen(connection, presence.Seen("quick@here:1", "quick", 1, slots=2))
    many = [make_operation(engine, bulk, NOON + number * MINUTE) for number in range(5)]
    all_due(engine)
    assert dispatch_ready(engine).count == 2
    sent = [id for id in many if row_of(engine, id)["state"] == "queued"]
    one = make_operation(engine, urgent, NOON)
    update_operation(engine, one, not_before=database_now(-1.0))
    assert dispatch_ready(engine).count == 0

    assert run_attempt(engine, settings, Registry(), (sent[0], 1), "tests") == "success"

    assert row_of(engine, one)["state"] == "queued"
    assert sum(row_of(engine, id)["turn"] == "waits" for id in many) == 3


def test_one_that_waited_behind_its_own_action_takes_its_place_by_priority(
    engine: sa.Engine,
) -> None:
    in_a_row = {"overlap": "queue", "priority": 50}
    action = make_action(engine, name="in a row", policy=in_a_row)
    running, behind = (
        make_operation(engine, action, NOON + number * MINUTE, "Scheduled") for number in range(2)
    )
    with engine.begin() as connection:
        assert isinstance(claim(connection, running, 1, "tests", alerts=NO_ALERTS), Claim)
        assert claim(connection, behind, 1, "tests", alerts=NO_ALERTS) is WAITS
    found = make_waiting(engine, 0, 60)

    with engine.begin() as connection:
        (released,) = end(
            connection, running, 1, Ending(OperationState.SUCCESS), alerts=NO_ALERTS
        ).released
    with engine.begin() as connection:
        (first,) = turns.admit(connection, [released], Sharing.PRIORITY)
    assert (released.id, first.id) == (behind, found[60])
    with engine.begin() as connection:
        unstarted.cancel(connection, first.id, "tests")
    assert [give_one(engine), give_one(engine)] == [behind, found[0]]


@pytest.mark.parametrize("overlap", ["skip", "replace"])
def test_an_app_alone_keeps_its_order_whatever_of_its_actions_runs(
    engine: sa.Engine, overlap: str
) -> None:
    action = make_action(engine, policy={"overlap": overlap, "priority": 1})
    running, later = (
        make_operation(engine, action, NOON + number * MINUTE, "Scheduled") for number in range(2)
    )
    update_operation(engine, running, turn="taken")
    with engine.begin() as connection:
        assert isinstance(claim(connection, running, 1, "tests", alerts=NO_ALERTS), Claim)

    with engine.begin() as connection:
        messages = [Message(later, 1, "a task", "quick")]
        assert turns.admit(connection, messages, Sharing.PRIORITY) == []


def test_a_retry_has_the_priority_of_its_action_now_and_waits_from_now_on(
    engine: sa.Engine, broker: Broker
) -> None:
    action = make_prioritised(engine, 0)
    id = make_operation(engine, action, NOON)
    with engine.begin() as connection:
        unstarted.cancel(connection, id, "tests")
    long_ago = row_of(engine, id)["recorded_at"] - timedelta(days=30)
    update_operation(engine, id, recorded_at=long_ago, ranked_at=long_ago)
    document = make_document(name=action.name, policy={"priority": -2})
    editing.replace_document(engine, action.uid, document, author(STEPS))

    retry(engine, id, WHOLE_INSTALLATION, "ann")

    again, two_hours = row_of(engine, id), timedelta(hours=2)
    with reading(engine) as connection:
        ranked = read_clock(connection) + two_hours
    assert again["priority"] == -2
    assert ranked - MINUTE < again["ranked_at"] <= ranked


def test_what_waits_is_sent_when_no_action_has_a_priority_any_more(
    engine: sa.Engine, broker: Broker
) -> None:
    found = make_waiting(engine, 5, 0)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE actions SET active = false"))

    Sweeper(MINUTE, NO_ALERTS).sweep(engine, send=True)

    assert [row_of(engine, id)["turn"] for id in found.values()] == [None, None]


def test_of_the_jobs_of_a_small_app_the_highest_priority_goes_first(engine: sa.Engine) -> None:
    ids = []
    for number, priority in enumerate([0, -5, 5]):
        operations_ = {"job": {"url": f"https://example.com/{number}"}}
        action = make_prioritised(engine, priority, operations=operations_)
        ids.append(make_operation(engine, action, NOON))
    all_due(engine)

    with reading(engine) as connection:
        found = jobs.offers(connection, {(None, "quick"): 10})

    assert [one.id for one in found[DEFAULT_APP.id, "quick"]] == [ids[2], ids[0], ids[1]]


def test_a_priority_puts_no_small_app_s_jobs_before_another_s(engine: sa.Engine) -> None:
    other = make_app(engine, "other")
    ours = make_operation(engine, make_action(engine, operations=JOB), NOON)
    update_operation(engine, ours, recorded_at=database_now(-60.0))
    urgent = make_prioritised(engine, 100, operations=JOB, app=other)
    make_operation(engine, urgent, NOON, app=other)
    all_due(engine)

    with reading(engine) as connection:
        found = jobs.offers(connection, {(None, "quick"): 10})

    assert list(found) == [(DEFAULT_APP.id, "quick"), (other.id, "quick")]
