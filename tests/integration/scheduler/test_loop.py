"""The loop on real databases, beside another daemon, and its pings."""

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from models.store import key_values
from models.tables import ticks
from runtime.clock import monotonic, wait_for
from runtime.config import Settings
from runtime.database import make_engine, reading
from runtime.stopping import Stop
from scheduler.loop import Daemon
from scheduler.ping import Ping
from tests.factories import STEPS, make_action
from tests.receiver import receiver
from tests.statements import begun
from tests.ticks import HOUR, MINUTE
from tests.transactions import act, clock_of
from tests.virtual_clock import VirtualClock

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


class Passing(Stop):
    """Lets the database's clock pass instead of waiting, until an instant."""

    def __init__(self, clock: VirtualClock, until: datetime) -> None:
        super().__init__()
        self._clock, self._until = clock, until

    def wait(self, timeout_s: float | None = None) -> bool:
        self._clock.set(self._clock.now + timedelta(seconds=timeout_s or 0))
        if self._clock.now > self._until:
            self.set()
        return self.is_set()


@pytest.mark.parametrize(
    ("tick_seconds", "expected"), [(60, [20, 60, 120]), (30, [20, 30, 60, 90, 120])]
)
def test_a_daemon_ticks_at_once_and_then_at_each_full_minute(
    engine: sa.Engine,
    settings: Settings,
    tick_seconds: int,
    expected: list[int],
    caplog: pytest.LogCaptureFixture,
) -> None:
    scheduler = settings.scheduler.model_copy(update={"tick_seconds": tick_seconds})
    settings = settings.model_copy(update={"scheduler": scheduler})
    clock = VirtualClock(engine, NOON + timedelta(seconds=20))

    Daemon(engine, settings, STEPS, Passing(clock, NOON + 2 * MINUTE)).run()

    with reading(engine) as connection:
        seen = connection.scalars(sa.select(ticks.c.now).order_by(ticks.c.now)).all()
    assert [(one - NOON).total_seconds() for one in seen] == expected
    # A wait that a stop ends early is no suspension.
    assert not [line for line in caplog.messages if "suspended" in line]


def test_a_daemon_that_was_frozen_at_its_clock_does_not_take_it_for_set_back(
    engine: sa.Engine, settings: Settings
) -> None:
    """Its first transaction is followed by an hour in which another daemon ticks."""
    other = make_engine(settings)
    in_an_hour = (clock_of(other) + HOUR).isoformat()

    def tick_elsewhere(*_: object) -> None:
        act(other, key_values.set_value, key_values.LAST_NOW, in_an_hour)

    sa.event.listen(engine, "checkin", tick_elsewhere, once=True)
    report = Daemon(engine, settings, steps=STEPS).tick_once()
    other.dispose()

    assert report.clock_set_back_s == 0


def test_an_idle_tick_is_two_transactions(engine: sa.Engine, settings: Settings) -> None:
    """One reads what there is to do, one stores the report."""
    daemon = Daemon(engine, settings, STEPS)
    daemon.prepare()
    make_action(engine, when={"cron_rule": "0 0 1 1 *", "timezone": "UTC"})
    daemon.tick_once()

    with begun(engine) as transactions:
        daemon.tick_once()

    assert len(transactions) == 2


def test_a_tick_with_one_due_is_five_transactions(engine: sa.Engine, settings: Settings) -> None:
    """It reads, records, looks for pauses, sends and marks, reports; it missed two as well."""
    VirtualClock(engine, NOON)
    daemon = Daemon(engine, settings, STEPS)
    daemon.prepare()
    daemon.tick_once()
    make_action(engine, since=NOON - timedelta(minutes=3))

    with begun(engine) as transactions:
        report = daemon.tick_once()

    assert (report.sent, report.missed, len(transactions)) == (1, 2, 5)


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_no_plan_is_kept_from_a_tick_whose_tables_were_still_empty(settings: Settings) -> None:
    engine = make_engine(settings, connections=1)
    daemon = Daemon(engine, settings, STEPS)
    daemon.prepare()

    for _ in range(10):
        daemon.tick_once()

    plans = "SELECT sum(generic_plans), sum(custom_plans) FROM pg_prepared_statements"
    with reading(engine) as connection:
        query = f"{plans} WHERE parameter_types <> '{{}}'"
        generic, custom = connection.exec_driver_sql(query).one()
    engine.dispose()
    assert generic == 0
    assert custom > 0


# A ping after each tick: no tick waits for its answer.


@pytest.mark.usefixtures("broker")
def test_each_tick_of_the_loop_pings(engine: sa.Engine, settings: Settings) -> None:
    with receiver() as watcher:
        alert = settings.alert.model_copy(update={"ping_url": SecretStr(f"{watcher.url}/check")})
        daemon = Daemon(engine, settings.model_copy(update={"alert": alert}), STEPS)
        daemon.prepare()
        daemon._tick_or_log()
        daemon.ping.wait()

    assert [(got.method, got.path) for got in watcher.got] == [("GET", "/check")]


def test_a_slow_answer_delays_nothing_and_is_not_asked_for_twice() -> None:
    with receiver() as watcher:
        watcher.trickle_s = 5
        ping = Ping(watcher.url)
        started = monotonic()
        ping.send()
        assert wait_for(lambda: bool(watcher.got), 5)
        ping.send()
        took = monotonic() - started
        watcher.stopping.set()
        ping.wait()

    assert took < 3
    assert len(watcher.got) == 1
