"""A dry run does what the change does, and leaves nothing behind."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
import sqlalchemy as sa

from models.errors import InvalidAction, Refused
from models.tables import actions, metadata, revisions
from scheduler.changes import Change, Done
from scheduler.changes.change import apply_all, create_all
from scheduler.changes.editing import replace_document
from tests.factories import author, make_action, make_document, rows_of
from tests.integration.scheduler.test_events import make_event, make_user
from tests.servers import Broker
from tests.ticks import HOUR, MINUTE, run_tick, tick_at
from tests.transactions import fetched
from tests.virtual_clock import VirtualClock

MONDAY = datetime(2027, 1, 4, tzinfo=UTC)
HOURLY = {"cron_rule": "0 * * * *", "timezone": "UTC"}
DAILY = {"cron_rule": "0 5 * * *", "timezone": "UTC"}


def tables(engine: sa.Engine) -> dict[str, list[Any]]:
    return {
        table.name: [tuple(row) for row in fetched(engine, sa.select(table))]
        for table in metadata.sorted_tables
    }


def told(made: list[Change]) -> list[tuple[object, ...]]:
    """Return what changes say that did the same; a new action has another uid each time."""
    return [
        (
            one.change is Done.CREATED or one.uid,
            (one.name, one.old_name, one.change, one.revision, one.switched),
            (one.plan, one.plan_before),
            (one.sent, one.missed, one.cancelled),
        )
        for one in made
    ]


def test_a_dry_run_reports_a_change_and_leaves_nothing(engine: sa.Engine, broker: Broker) -> None:
    clock = VirtualClock(engine, MONDAY)
    make_action(engine, name="behind", when=HOURLY)
    make_action(engine, name="same", when=HOURLY, owner="me")
    make_action(engine, name="owned", when=HOURLY, owner="me")
    make_action(engine, name="follower", when={"after": {"action": "behind"}})
    clock.set(MONDAY + 3 * HOUR + MINUTE)
    documents = [
        make_document(name="behind", when=DAILY, active=False),
        make_document(name="same", when=HOURLY),
        make_document(name="new", when={"after": {"action": "same"}}),
    ]
    before = tables(engine)

    def applied(*, dry_run: bool) -> list[Change]:
        return apply_all(engine, documents, author(), dry_run=dry_run, prune="me")

    tried, left, messages = applied(dry_run=True), tables(engine), broker.messages("quick")
    done = applied(dry_run=False)

    assert told(tried) == told(done)
    assert left == before
    assert messages == []
    assert len(broker.messages("quick")) == 1
    assert {one.name: one.change for one in tried} == {
        "behind": "changed", "same": "unchanged", "new": "created", "owned": "deleted",
    }  # fmt: skip
    behind = (tried[0].sent, tried[0].missed, tried[0].switched)
    assert behind == ((MONDAY + 3 * HOUR,), 2, "paused")


def test_an_edit_that_is_tried_reports_what_it_does(engine: sa.Engine) -> None:
    action = make_action(engine, name="one", when=HOURLY)
    document = make_document(name="two", when=DAILY)
    before = tables(engine)

    tried = replace_document(engine, action.uid, document, author(), dry_run=True)
    left = tables(engine)
    done = replace_document(engine, action.uid, document, author())

    assert told([tried]) == told([done])
    assert left == before
    assert (done.old_name, done.name, done.revision) == ("one", "two", 2)


Stores = Callable[..., list[Change]]


@pytest.mark.parametrize(
    ("store", "documents", "error"),
    [
        pytest.param(apply_all, [{"when": {"cron_rule": "61 * * * *"}}], InvalidAction, id="rule"),
        pytest.param(create_all, [{"name": "there"}], Refused, id="taken name"),
        pytest.param(
            apply_all, [{"name": "there", "when": {"after": {"action": "there"}}}], InvalidAction,
            id="cycle",
        ),
    ],
)  # fmt: skip
def test_a_dry_run_refuses_what_the_change_refuses(
    engine: sa.Engine, store: Stores, documents: list[dict[str, Any]], error: type[Exception]
) -> None:
    make_action(engine, name="there", when=HOURLY)
    given = [make_document(**one) for one in documents]
    found = []
    for dry_run in (True, False):
        with pytest.raises(error) as refused:
            store(engine, given, author(), dry_run=dry_run)
        found.append(str(refused.value))

    assert found[0] == found[1]


def test_no_lock_outlives_a_dry_run(engine: sa.Engine) -> None:
    """Its connection went back to the pool with what it held, and another change is not kept."""
    make_action(engine, name="one", when=HOURLY)
    document = make_document(name="one", when=DAILY)
    apply_all(engine, [document], author(), dry_run=True)

    with ThreadPoolExecutor(1) as pool, engine.connect():
        made = pool.submit(apply_all, engine, [document], author())
        assert [one.revision for one in made.result(5)] == [2]


@pytest.mark.usefixtures("broker")
def test_changes_and_dry_runs_side_by_side_come_one_after_the_other(engine: sa.Engine) -> None:
    names = [f"no {number}" for number in range(20)]

    def applied(number: int) -> list[Change]:
        some = names if number % 2 else names[::-1]
        documents = [make_document(name=name, description=f"by {number % 3}") for name in some]
        return apply_all(engine, documents, author(), dry_run=number % 4 == 3)

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(applied, range(12)))

    stored = [one for n, changes in enumerate(made) if n % 4 != 3 for one in changes]
    new = sorted((one.name, one.revision) for one in stored if one.change is not Done.UNCHANGED)
    query = sa.select(actions.c.name, revisions.c.number).join_from(revisions, actions)
    # Each revision was made once.
    assert sorted(tuple(row) for row in fetched(engine, query)) == new
    assert sum(one.change is Done.CREATED for one in stored) == len(names)


@pytest.mark.parametrize("seed", range(4))
def test_applying_sends_exactly_what_the_dry_run_listed(engine: sa.Engine, seed: int) -> None:
    random = Random(seed)
    clock = VirtualClock(engine, MONDAY)
    policy = {
        "catch_up": random.choice(["latest", "all"]),
        "look_back": random.choice(["PT5M", "PT90M", "P1D"]),
        "overlap": "allow",
    }
    when = random.choice([HOURLY, {"every": "PT25M"}, {"cron_rule": "*/10 * * * *"}])
    action = make_action(engine, name="one", when=when, policy=policy)
    clock.set(MONDAY + random.randrange(200) * MINUTE)
    run_tick(engine)
    clock.set(clock.now + random.randrange(300) * MINUTE + timedelta(seconds=random.randrange(60)))
    before = {row["id"]: row["state"] for row in rows_of(engine, action)}
    document = make_document(name="one", when=DAILY, policy=policy)

    (foreseen,) = apply_all(engine, [document], author(), dry_run=True)
    apply_all(engine, [document], author())

    new = [row for row in rows_of(engine, action) if row["id"] not in before]
    sent = [row["occurrence_at"] for row in new if row["state"] == "queued"]
    assert list(foreseen.sent) == sent


@pytest.mark.parametrize("catch_up", ["latest", "all"])
def test_what_was_sent_ahead_of_the_clock_is_not_listed(engine: sa.Engine, catch_up: str) -> None:
    clock = VirtualClock(engine, MONDAY)
    policy = {"catch_up": catch_up, "look_back": "P1D", "overlap": "allow"}
    make_action(engine, name="one", when=HOURLY, policy=policy)
    for at in (MONDAY + 3 * HOUR, MONDAY + MINUTE):
        tick_at(clock, at)
    clock.set(MONDAY + 3 * HOUR + MINUTE)

    document = make_document(name="one", when=DAILY, policy=policy)
    (foreseen,) = apply_all(engine, [document], author(), dry_run=True)

    assert (foreseen.sent, foreseen.missed) == ((), 2 if catch_up == "latest" else 0)


def test_a_dry_run_foretells_what_events_make_due(engine: sa.Engine) -> None:
    clock = VirtualClock(engine, MONDAY)
    on_paid: dict[str, Any] = {"name": "paid", "when": {"on": "order.paid"}}
    on_paid["policy"] = {"look_back": "PT5M"}
    action = make_action(engine, **on_paid)
    make_user(engine, "ann")
    tick_at(clock, MONDAY + MINUTE)
    clock.set(MONDAY + HOUR)
    for minutes in (2, 3, 30):
        make_event(engine, "order.paid", str(minutes), "ann", MONDAY + HOUR - minutes * MINUTE)

    paused = make_document(**on_paid, active=False)
    (foreseen,) = apply_all(engine, [paused], author(), dry_run=True)
    apply_all(engine, [paused], author())

    rows = rows_of(engine, action)
    assert list(foreseen.sent) == [r["occurrence_at"] for r in rows if r["state"] == "queued"]
    assert (len(foreseen.sent), foreseen.missed, len(rows)) == (2, 1, 3)
