"""Delete all actions of an owner or a small app, also after a kill."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Thread
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.errors import NotFound, Refused
from models.operation import OperationState
from models.store import tenants
from models.store.actions import cursors
from models.store.actions import deletion as deletions
from models.store.operations import backfills
from models.store.scope import WHOLE_INSTALLATION
from models.tables import actions, audit, operations, revisions
from runtime.clock import wait_for
from runtime.database import reading
from scheduler.changes import Change, deletion
from scheduler.changes.change import create_all
from scheduler.changes.deletion import delete_app, delete_many
from scheduler.changes.validation import ChangeContext
from scheduler.on_demand.backfill import cancel as cancel_backfill
from tests.factories import (
    author,
    make_action,
    make_app,
    make_document,
    make_many,
    make_operation,
    row_of,
    waits_for_lock,
)
from tests.ticks import run_tick
from tests.transactions import act, clock_of, fetched


@pytest.fixture
def shop(engine: sa.Engine) -> ChangeContext:
    return author(app=make_app(engine, "shop"))


def make(engine: sa.Engine, who: ChangeContext, count: int, **changes: Any) -> list[UUID]:
    documents = [make_document(**changes, name=f"action {n}") for n in range(count)]
    return [one.uid for one in create_all(engine, documents, who)]


def delete_owned(engine: sa.Engine, owner: str) -> list[Change]:
    uids = list(act(engine, deletions.owned, author().small_app.id, owner))
    return delete_many(engine, uids, author())


def left(engine: sa.Engine) -> list[str]:
    query = sa.select(actions.c.name).where(actions.c.deleted_at.is_(None))
    return sorted(fetched(engine, query).scalars())


def test_deleting_by_owner_takes_the_owners_actions_along_and_no_other(
    engine: sa.Engine, shop: ChangeContext
) -> None:
    make_action(engine, name="pop3 in", owner="channel:pop3:42")
    make_action(engine, name="pop3 out", owner="channel:pop3:42")
    make_action(engine, name="other", owner="channel:pop3:4")
    make_action(engine, name="nobody's")
    make(engine, shop, 1, owner="channel:pop3:42")

    deleted = delete_owned(engine, "channel:pop3:42")

    assert [one.name for one in deleted] == ["pop3 in", "pop3 out"]
    assert left(engine) == ["action 0", "nobody's", "other"]
    assert delete_owned(engine, "channel:pop3:42") == []
    assert delete_many(engine, [one.uid for one in deleted], author()) == []


def test_what_was_due_is_decided_and_unstarted_operations_are_cancelled(engine: sa.Engine) -> None:
    now = clock_of(engine)
    since = now - timedelta(minutes=3)
    action = make_action(engine, since=since, owner="o", policy={"overlap": "allow"})
    waits = make_operation(engine, action, now - timedelta(minutes=30))

    deleted = delete_owned(engine, "o")

    assert [one.cancelled for one in deleted] == [2]
    assert row_of(engine, waits)["state"] == OperationState.CANCELLED
    states = fetched(engine, sa.select(operations.c.state)).scalars().all()
    ended = fetched(engine, sa.select(revisions.c.end_reason)).scalars().all()
    verbs = fetched(engine, sa.select(audit.c.verb)).scalars().all()
    assert sorted(states)[:2] == ["cancelled", "cancelled"]
    assert set(states) <= {"cancelled", "missed"}
    assert ended == ["deleted"]
    assert verbs[-1] == "action.delete"


@pytest.mark.parametrize("stop", ["delete", "cancel"])
def test_who_stops_a_backfill_waits_for_its_recording(engine: sa.Engine, stop: str) -> None:
    """A worker holds the backfill, then locks the action: the other order would be a deadlock."""
    action = make_action(engine, owner="o")
    backfill, now = UUID(int=7), clock_of(engine)
    row = {"id": backfill, "small_app_id": 1, "action_uid": action.uid, "until": now}
    row |= {"since": now - timedelta(days=1), "mode": "missing", "actor": "tests"}
    act(engine, backfills.insert, row)

    def stop_it() -> None:
        if stop == "delete":
            delete_owned(engine, "o")
        else:
            cancel_backfill(engine, action.uid, "tests")

    with ThreadPoolExecutor(1) as pool:
        with engine.begin() as connection:
            assert backfills.hold(connection, backfill) is not None
            stopping = pool.submit(stop_it)
            assert wait_for(lambda: waits_for_lock(engine), 20)
            cursors.lock(connection, action.uid)
        stopping.result()

    assert act(engine, backfills.get, backfill, WHOLE_INSTALLATION)["state"] == "cancelled"


def test_a_small_app_goes_with_all_its_actions_some_at_a_time(
    engine: sa.Engine, shop: ChangeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "AT_ONCE", 3)
    make(engine, shop, 8)
    make_action(engine, name="of another app")

    deleted = delete_app(engine, shop)

    assert len(deleted) == 8
    assert left(engine) == ["of another app"]
    with reading(engine) as connection, pytest.raises(NotFound):
        tenants.get(connection, "shop")
    with pytest.raises(NotFound, match='"shop" was deleted'):
        make(engine, shop, 1)


def test_whoever_adds_and_whoever_deletes_at_once_leave_no_action_behind(
    engine: sa.Engine, shop: ChangeContext
) -> None:
    ends: list[object] = []

    def add() -> None:
        for number in range(40):
            try:
                create_all(engine, [make_document(name=f"late {number}")], shop)
            except (NotFound, Refused) as error:
                ends.append(error)
                return

    adder = Thread(target=add)
    adder.start()
    assert wait_for(lambda: len(left(engine)) > 2, 20)
    try:
        delete_app(engine, shop)
    except Refused:
        adder.join()
        delete_app(engine, shop)
    adder.join()

    assert left(engine) == []


def test_the_tick_goes_on_while_many_are_deleted(
    engine: sa.Engine, shop: ChangeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "AT_ONCE", 40)
    make_many(engine, 400, owner="many")
    other = make(engine, shop, 1)
    now = clock_of(engine) + timedelta(minutes=1)
    deleter = Thread(target=delete_owned, args=(engine, "many"))
    deleter.start()

    run_tick(engine, now)
    deleter.join()

    assert left(engine) == ["action 0"]
    mine = operations.c.action_uid == other[0]
    assert fetched(engine, sa.select(sa.func.count()).where(mine)).scalar_one() == 1
    unstarted = operations.c.state.in_(("pending", "queued")) & (
        operations.c.action_uid != other[0]
    )
    assert fetched(engine, sa.select(operations.c.id).where(unstarted)).all() == []


def test_one_that_is_killed_on_the_way_is_finished_by_asking_again(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "AT_ONCE", 3)
    make_many(engine, 8, owner="many")

    def die(_: sa.Engine) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(deletion, "give_way", die)
        with pytest.raises(KeyboardInterrupt):
            delete_owned(engine, "many")

    assert len(left(engine)) == 5
    assert len(delete_owned(engine, "many")) == 5
    assert left(engine) == []
