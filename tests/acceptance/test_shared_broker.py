"""An application has the same broker: neither takes, discards or stops anything of the other."""

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import product
from typing import Any

import pytest
from celery import Celery
from kombu import Exchange, Producer, Queue
from pydantic import SecretStr

from models.worker_kinds import EXECUTE_QUICK
from runtime.config import Settings
from tests.acceptance.installation import Installation
from tests.servers import Broker


@pytest.fixture(params=["redis", "rabbitmq"])
def installation(
    request: pytest.FixtureRequest, home_of: Callable[[str], Settings], broker: Broker
) -> Iterator[Installation]:
    """An installation whose broker an application has too."""
    server = broker if request.param == "redis" else request.getfixturevalue("rabbitmq")
    settings = home_of("sqlite").model_copy(update={"broker_url": SecretStr(server.url)})
    with closing(Installation("sqlite", settings, server)) as made:
        yield made


@pytest.fixture
def application(installation: Installation) -> Iterator[Celery]:
    with closing(Celery("shop", broker=installation.settings.effective_broker_url)) as made:
        yield made


def test_a_task_that_we_do_not_know_is_rejected_and_logged_once(
    installation: Installation, application: Celery
) -> None:
    ours: Any = Queue("minutebook.quick", Exchange(""), "minutebook.quick")
    for number in range(3):
        application.send_task("shop.close_day", [number], queue=ours)
    id = installation.operation(installation.action())
    installation.tick()

    worker = installation.worker()
    installation.becomes(id, "success")

    worker.said("Received unregistered task of type 'shop.close_day'", times=3)


def test_no_control_command_of_an_application_reaches_our_workers(
    installation: Installation, application: Celery
) -> None:
    worker = installation.worker(is_awaited=True)
    with application.connection_for_write() as connection:
        application.control.shutdown(connection=connection)

    id = installation.operation(installation.action())
    installation.tick()
    installation.becomes(id, "success")
    assert worker.is_alive


HEADERS: list[Any] = [
    {"task": []}, {"task": {"a": 1}}, {"task": None, "id": None}, {"task": "x" * 100_000},
    {"task": EXECUTE_QUICK}, {"task": EXECUTE_QUICK, "id": 7, "eta": "soon"},
    {"task": EXECUTE_QUICK, "id": "1", "timelimit": "no", "retries": {}, "expires": []},
]  # fmt: skip


def test_no_broken_message_ends_a_worker(installation: Installation, application: Celery) -> None:
    worker = installation.worker(is_awaited=True)
    with application.connection_for_write() as connection, connection.channel() as channel:
        producer = Producer(channel, routing_key="minutebook.quick")
        bodies: list[Any] = ["not a list", [[], {}, {}], [["x"], {}, 7]]
        for headers, body in product(HEADERS, bodies):
            producer.publish(body, headers=headers)
        producer.publish(b"\x80\x04", content_type="application/x-python-serialize")
    action = installation.action()
    ids = [installation.operation(action, minutes_ago=n) for n in range(2)]
    installation.tick()

    for id in ids:
        assert installation.becomes(id, "success")["attempt"] == 1
    assert worker.is_alive
    assert worker.text().count("is ready for") == 1
