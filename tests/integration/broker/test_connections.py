"""Connections to our broker: which one, how often they are tried, and that none is silent."""

import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kombu.utils import functional
from pydantic import SecretStr

from broker.app import app, configure, sending_connection
from broker.consumer import RejectingConsumer
from runtime.config import Settings
from tests.servers import free_port

TRIES = 12
# HAProxy's in many configurations.
PROXY_CLOSES_AFTER_S = 30
VARIABLES = ("CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL")


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


def test_neither_workers_nor_daemons_go_to_the_broker_of_the_application(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, "redis://theirs.invalid:6379/0")
    ours = SecretStr("redis://ours.invalid:6379/0")
    configure(settings.model_copy(update={"broker_url": ours}))

    hosts = {app.connection_for_read().hostname, sending_connection().hostname}
    assert hosts == {"ours.invalid"}


def test_the_settings_of_the_application_are_not_ours(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELERY_CONFIG_MODULE", "of_no_package_of_ours")
    monkeypatch.setattr(app.loader, "_conf", app.loader.read_configuration())

    configure(settings)

    assert app.loader.conf == {}


def test_a_worker_speaks_on_each_connection_to_redis_before_a_proxy_closes_it(
    settings: Settings,
) -> None:
    app = configure(settings)
    with app.connection_for_read() as connection:
        channel: Any = connection.default_channel
        with channel.conn_or_acquire() as client:
            driver_s = client.connection_pool.connection_kwargs["health_check_interval"]
        checks_each_s = channel.health_check_interval

    # The check sends something only if the driver finds that it is time, as late as the next one.
    assert checks_each_s + driver_s < PROXY_CLOSES_AFTER_S
