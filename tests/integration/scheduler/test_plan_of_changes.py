"""A plan lists exactly what applying does."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
import sqlalchemy as sa

from models.errors import InvalidAction
from models.sql import read_clock
from models.store.notices.alerting import NO_ALERTS
from models.tables import metadata
from runtime.database import reading
from scheduler.changes import change
from scheduler.changes.change import Change
from scheduler.changes.plan import PlannedChange, load, plan_changes
from scheduler.sweep import Sweeper
from scheduler.tick import tick
from tests.factories import author, make_action, make_document, rows_of
from tests.statements import executed
from tests.virtual_clock import VirtualClock

MONDAY = datetime(2027, 1, 4, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
HOURLY = {"cron_rule": "0 * * * *", "timezone": "UTC"}
DAILY = {"cron_rule": "0 5 * * *", "timezone": "UTC"}
LEASE = timedelta(seconds=45)


def plan(engine: sa.Engine, *documents: object) -> list[PlannedChange]:
    with reading(engine) as connection:
        return plan_changes(connection, documents, author(), read_clock(connection))


def tables(engine: sa.Engine) -> dict[str, list[Any]]:
    """Return every row of every table."""
    with reading(engine) as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(sa.select(table))]
            for table in metadata.sorted_tables
        }


def test_what_is_new_changed_and_the_same_is_told_apart(engine: sa.Engine) -> None:
    VirtualClock(engine, MONDAY)
    made = make_action(engine, name="one", when=HOURLY)
    make_action(engine, name="same", when=HOURLY)

    changed, same, new = plan(
        engine,
        make_document(name="one", when=DAILY),
        make_document(name="same", when=HOURLY),
        make_document(name="new", when=DAILY),
    )

    assert (changed.change, changed.uid, changed.number) == (Change.CHANGED, made.uid, 2)
    assert (changed.before[0], changed.after[0]) == (MONDAY + HOUR, MONDAY + 5 * HOUR)
    assert (same.change, same.number, same.before) == (Change.UNCHANGED, 1, same.after)
    assert (new.change, new.uid, new.after[0]) == (Change.CREATED, None, MONDAY + 5 * HOUR)


def test_nothing_is_stored(engine: sa.Engine) -> None:
    clock = VirtualClock(engine, MONDAY)
    make_action(engine, name="one", when=HOURLY)
    clock.set(MONDAY + 3 * HOUR + MINUTE)
    before = tables(engine)

    (foreseen,) = plan(engine, make_document(name="one", when=DAILY))
    with reading(engine) as connection:
        load(connection, [foreseen], clock.now)

    assert foreseen.sent == (MONDAY + 3 * HOUR,)
    assert foreseen.missed == 2
    assert tables(engine) == before


def test_a_wrong_document_is_refused_as_apply_refuses_it(engine: sa.Engine) -> None:
    with pytest.raises(InvalidAction, match="cron_rule"):
        plan(engine, make_document(when={"cron_rule": "61 * * * *"}))


def test_pausing_leaves_nothing_to_come(engine: sa.Engine) -> None:
    make_action(engine, name="one", when=HOURLY)

    (paused,) = plan(engine, make_document(name="one", when=HOURLY, active=False))

    assert paused.change is Change.CHANGED
    assert (len(paused.before), paused.after) == (5, ())


def test_the_load_of_the_busiest_minute_counts_all_actions(engine: sa.Engine) -> None:
    clock = VirtualClock(engine, MONDAY)
    for number in range(3):
        make_action(engine, name=f"hourly {number}", when=HOURLY)
    documents = [make_document(name=f"daily {number}", when=DAILY) for number in range(2)]
    documents.append(make_document(name="hourly 0", when=HOURLY, active=False))

    foreseen = plan(engine, *documents)
    with reading(engine) as connection:
        found = load(connection, foreseen, clock.now)

    assert found.before == (MONDAY + HOUR, 3)
    assert found.after == (MONDAY + 5 * HOUR, 4)
    assert found.is_whole


@pytest.mark.parametrize("seed", range(12))
def test_applying_sends_exactly_what_the_plan_listed(engine: sa.Engine, seed: int) -> None:
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
    tick(engine, None, Sweeper(LEASE, NO_ALERTS))
    clock.set(clock.now + random.randrange(300) * MINUTE + timedelta(seconds=random.randrange(60)))
    before = {row["id"]: row["state"] for row in rows_of(engine, action)}
    document = make_document(name="one", when=DAILY, policy=policy)

    (foreseen,) = plan(engine, document)
    change.apply_all(engine, [document], author())

    new = [row for row in rows_of(engine, action) if row["id"] not in before]
    sent = [row["occurrence_at"] for row in new if row["state"] == "queued"]
    assert list(foreseen.sent) == sent
    clock.set(foreseen.after[0])
    tick(engine, None, Sweeper(LEASE, NO_ALERTS))
    assert rows_of(engine, action)[-1]["occurrence_at"] == foreseen.after[0]


@pytest.mark.parametrize("catch_up", ["latest", "all"])
def test_what_was_sent_while_the_clock_was_ahead_is_not_listed(
    engine: sa.Engine, catch_up: str
) -> None:
    clock = VirtualClock(engine, MONDAY)
    policy = {"catch_up": catch_up, "look_back": "P1D", "overlap": "allow"}
    make_action(engine, name="one", when=HOURLY, policy=policy)
    sweeper = Sweeper(LEASE, NO_ALERTS)
    for at in (MONDAY + 3 * HOUR, MONDAY + MINUTE):
        clock.set(at)
        tick(engine, None, sweeper)
    clock.set(MONDAY + 3 * HOUR + MINUTE)

    (foreseen,) = plan(engine, make_document(name="one", when=DAILY, policy=policy))

    assert (foreseen.sent, foreseen.missed) == ((), 2 if catch_up == "latest" else 0)


def test_a_plan_of_many_changes_takes_as_many_statements_as_one_of_few(engine: sa.Engine) -> None:
    """Each of the actions is behind by an hour, and each is changed."""
    VirtualClock(engine, MONDAY)
    names = [f"one {number}" for number in range(30)]
    for name in names:
        make_action(engine, name=name, when=HOURLY, since=MONDAY - HOUR - MINUTE)
    documents = [make_document(name=name, when=DAILY) for name in names]

    with executed(engine) as few:
        plan(engine, *documents[:2])
    with executed(engine) as many:
        found = plan(engine, *documents)

    assert len(many) == len(few)
    assert {(len(one.sent), one.missed) for one in found} == {(1, 1)}
