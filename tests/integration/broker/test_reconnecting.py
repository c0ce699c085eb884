"""How often a worker of ours tries to reach a broker that is down."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from kombu.utils import functional
from pydantic import SecretStr

from broker.app import app, configure
from broker.consumer import RejectingConsumer
from runtime.config import Settings
from tests.servers import Broker, free_port

TRIES = 12


class NoMoreTries(Exception):
    """Ends the tries of a test."""


@pytest.fixture
def settings(home_of: Callable[[str], Settings]) -> Iterator[Settings]:
    """Settings that the broker's app has again after the test."""
    made = home_of("sqlite")
    yield made
    configure(made)


def consumer_of(settings: Settings, url: str) -> RejectingConsumer:
    configure(settings.model_copy(update={"broker_url": SecretStr(url)}))
    worker = SimpleNamespace(use_eventloop=False)
    return RejectingConsumer(on_task_request=print, app=app, controller=worker)


def announced(caplog: pytest.LogCaptureFixture) -> list[float]:
    """Return the pauses before the next tries, as the worker's log names them."""
    return [float(text) for text in re.findall(r"Trying again in ([\d.]+) seconds", caplog.text)]


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_tries_are_at_most_five_seconds_apart(
    settings: Settings,
    scheme: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def sleep(_seconds: float) -> None:
        if len(announced(caplog)) == TRIES:
            raise NoMoreTries

    monkeypatch.setattr(functional, "sleep", sleep)
    consumer = consumer_of(settings, f"{scheme}://127.0.0.1:{free_port()}")

    with pytest.raises(NoMoreTries):
        consumer.connection_for_read()

    # To connect may take its time as well.
    assert max(announced(caplog)) + app.conf.broker_connection_timeout <= 5


def test_a_try_after_others_reaches_a_broker_that_is_back(
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = Broker(tmp_path, free_port())

    def sleep(_seconds: float) -> None:
        if len(announced(caplog)) == TRIES and broker.process is None:
            broker.start()

    monkeypatch.setattr(functional, "sleep", sleep)
    try:
        with consumer_of(settings, broker.url).connection_for_read() as connection:
            assert connection.connected
    finally:
        broker.stop()

    assert len(announced(caplog)) == TRIES
