"""Beyond its limit of waiting operations, an app's occurrences are recorded as missed."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from broker.app import configure
from models.errors import Refused
from models.store.notices.alerting import NO_ALERTS
from models.store.operations.waiting import Room
from models.store.scope import WHOLE_INSTALLATION
from runtime.config import Settings
from runtime.sections.limits import LimitSettings
from scheduler.changes.change import Changed
from scheduler.on_demand import manual, restart
from scheduler.sweep import Sweeper
from scheduler.tick import TickReport, tick
from tasks import backfill as filling
from tests.factories import DEFAULT_APP, STEPS, make_action, make_app, make_operation, rows_of
from tests.integration.scheduler.test_backfill import (
    HOUR,
    backfill_of,
    hour_of,
    make_hourly,
    start,
    wanted,
)
from tests.integration.scheduler.test_events import DAY, decided_until, make_user
from tests.statements import executed

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
MOST = 3
FREELY = {"overlap": "allow"}


@pytest.fixture(autouse=True)
def limited(engine: sa.Engine, settings: Settings) -> Iterator[Callable[[int], None]]:
    """A limit of three operations that wait; the value is a function that sets another."""

    def limit(most: int) -> None:
        configure(settings.model_copy(update={"limits": LimitSettings(waiting=most)}))

    limit(MOST)
    yield limit
    configure(settings)


def ticked(engine: sa.Engine, now: datetime = NOON) -> TickReport:
    return tick(engine, now, Sweeper(MINUTE, NO_ALERTS), STEPS)


def states(engine: sa.Engine, action: Changed) -> list[str]:
    return [row["state"] for row in rows_of(engine, action)]


def make_waiting(engine: sa.Engine, count: int) -> Changed:
    action = make_action(engine, name="waiting", active=False, policy=FREELY)
    for number in range(1, count + 1):
        make_operation(engine, action, NOON - number * MINUTE)
    return action


def test_the_last_one_within_the_limit_waits_and_the_next_is_missed(engine: sa.Engine) -> None:
    make_waiting(engine, MOST - 1)
    due = [make_action(engine, name=name, since=NOON - MINUTE) for name in ("one", "two")]

    report = ticked(engine)

    assert (report.recorded, report.missed) == (1, 1)
    assert sorted(states(engine, one)[0] for one in due) == ["missed", "queued"]
    (row,) = [row for one in due for row in rows_of(engine, one) if row["state"] == "missed"]
    assert row["reason"] == (
        "3 operations of its small app are already waiting (SCHED_LIMITS_WAITING); "
        "raise the limit or start more workers, then rerun it"
    )


def test_a_tick_of_many_batches_fills_its_room_to_the_last(
    engine: sa.Engine, limited: Callable[[int], None]
) -> None:
    limited(40)
    make_waiting(engine, 7)
    due = [make_action(engine, name=f"due {n}", since=NOON - MINUTE) for n in range(50)]

    report = tick(engine, NOON, Sweeper(MINUTE, NO_ALERTS), STEPS, batch_size=4)

    assert (report.recorded, report.missed) == (33, 17)
    assert Counter(states(engine, one)[0] for one in due) == {"queued": 33, "missed": 17}


def test_what_waits_is_not_counted_for_each_batch(
    engine: sa.Engine, limited: Callable[[int], None]
) -> None:
    limited(1_000)
    for n in range(50):
        make_action(engine, name=f"due {n}", since=NOON - MINUTE)

    with executed(engine) as statements:
        report = tick(engine, NOON, Sweeper(MINUTE, NO_ALERTS), STEPS, batch_size=1)

    assert report.recorded == 50
    assert len([one for one in statements if "count(*)" in one and "operations" in one]) == 1


def test_what_others_record_meanwhile_is_counted_before_the_room_is_half_full(
    engine: sa.Engine,
) -> None:
    room = Room(10)
    with engine.begin() as connection:
        room.look(connection)
    make_waiting(engine, 6)
    rows = [{"small_app_id": DEFAULT_APP.id}] * 6

    with engine.begin() as connection:
        kept, beyond = room.within(connection, rows)

    assert (len(kept), len(beyond)) == (4, 2)


def test_without_a_limit_all_wait(engine: sa.Engine, limited: Callable[[int], None]) -> None:
    limited(0)
    make_waiting(engine, MOST)
    due = make_action(engine, since=NOON - MINUTE)

    ticked(engine)

    assert states(engine, due) == ["queued"]


def test_what_another_app_has_waiting_does_not_count(engine: sa.Engine) -> None:
    make_waiting(engine, MOST)
    due = make_action(engine, app=make_app(engine, "other"), since=NOON - MINUTE)

    ticked(engine)

    assert states(engine, due) == ["queued"]


def test_a_missed_one_runs_when_it_is_asked_for_again(engine: sa.Engine) -> None:
    make_waiting(engine, MOST)
    due = make_action(engine, since=NOON - MINUTE)
    ticked(engine)
    assert states(engine, due) == ["missed"]

    restart.rerun(engine, rows_of(engine, due)[0]["id"], WHOLE_INSTALLATION, "tests")

    assert states(engine, due) == ["queued"]


def test_a_manual_run_is_refused(engine: sa.Engine) -> None:
    make_waiting(engine, MOST - 1)
    action = make_action(engine, policy=FREELY)
    manual.run_now(engine, action.uid, "tests")

    with pytest.raises(
        Refused, match=r"3 operations of its small app are already waiting \(SCHED_LIM"
    ):
        manual.run_now(engine, action.uid, "tests")
    assert len(rows_of(engine, action)) == 1


def test_an_event_beyond_the_limit_is_missed(engine: sa.Engine) -> None:
    make_waiting(engine, MOST)
    action = make_action(engine, when={"on": "instance.user.last_seen"}, since=NOON - DAY)
    decided_until(engine, NOON - MINUTE)
    make_user(engine, "ann", last_seen_at=NOON - MINUTE / 2)

    report = ticked(engine)

    (row,) = rows_of(engine, action)
    assert (row["state"], row["subject"], report.missed) == ("missed", "ann", 1)
    assert "SCHED_LIMITS_WAITING" in row["reason"]


def test_a_backfill_waits_for_room(engine: sa.Engine, limited: Callable[[int], None]) -> None:
    make_waiting(engine, MOST)
    hourly = make_hourly(engine)
    first = hour_of(engine)
    id = start(engine, wanted(hourly, first, first + HOUR))

    assert filling.work_off(engine, (id, 1)) == "too many wait"
    assert rows_of(engine, hourly) == []
    limited(100)
    turn = (id, backfill_of(engine, id)["attempt"])
    assert filling.work_off(engine, turn) == "done"
    assert len(rows_of(engine, hourly)) == 2
