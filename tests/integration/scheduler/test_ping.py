"""The daemon pings after a tick, and no tick waits for the answer."""

import pytest
import sqlalchemy as sa

from runtime.clock import monotonic, wait_for
from runtime.config import Settings, load_settings
from scheduler.loop import Daemon
from scheduler.ping import Ping
from tests.factories import STEPS
from tests.receiver import receiver


def with_ping(settings: Settings, url: str, **environ: str) -> Settings:
    own = {
        "SCHED_DATABASE_URL": settings.database_url.get_secret_value(),
        "SCHED_BROKER_URL": settings.broker_url.get_secret_value(),
        "SCHED_ALERT_PING_URL": url,
        **environ,
    }
    return load_settings(settings.home, {key: value for key, value in own.items() if value})


@pytest.mark.usefixtures("broker")
def test_each_tick_of_the_loop_pings(engine: sa.Engine, settings: Settings) -> None:
    with receiver() as watcher:
        daemon = Daemon(engine, with_ping(settings, f"{watcher.url}/check"), steps=STEPS)
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


def test_one_that_nobody_answers_is_logged_without_its_address(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ping = Ping("http://127.0.0.1:1/s3cret")

    ping.send()
    ping.wait()

    assert "the ping was not answered" in caplog.text
    assert "s3cret" not in caplog.text
