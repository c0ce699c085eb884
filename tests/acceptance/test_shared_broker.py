"""An application has the same broker: neither takes, discards or stops anything of the other."""

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import product
from typing import Any

import pytest
from celery import Celery
from kombu import Connection, Exchange, Producer, Queue
from pydantic import SecretStr

from models.worker_kinds import EXECUTE_QUICK
from runtime.config import Settings
from tests.acceptance.installation import Installation
from tests.servers import Broker

# As an application may call its own; RabbitMQ refuses another declaration of a queue.
PRIORITIES = {"x-max-priority": 10}
OURS = ("quick", "heavy", "default")


@pytest.fixture(params=["redis", "rabbitmq"])
def installation(
    request: pytest.FixtureRequest, home_of: Callable[[str], Settings], broker: Broker
) -> Iterator[Installation]:
    """An installation whose broker an application has too."""
    server = broker if request.param == "redis" else request.getfixturevalue("rabbitmq")
    settings = home_of("sqlite").model_copy(update={"broker_url": SecretStr(server.url)})
    with closing(Installation("sqlite", settings, server)) as made:
        yield made


class Application:
    """Another Celery application with the same broker."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.celery = Celery("shop", broker=url)

    def send(self, queue: str, *numbers: int) -> None:
        """Send tasks to a queue of its own, or to one of ours by mistake."""
        arguments = {} if queue.startswith("minutebook.") else PRIORITIES
        own: Any = Queue(queue, Exchange(""), queue, queue_arguments=arguments)
        for number in numbers:
            self.celery.send_task("shop.close_day", [number], {"at": "night"}, queue=own)

    def sent(self, queue: str) -> list[tuple[str, list[int]]]:
        """Take what waits in a queue; return task and arguments of each, oldest first."""
        found: list[tuple[str, list[int]]] = []
        with closing(Connection(self.url)) as connection, connection.channel() as channel:
            while (message := Queue(queue, channel=channel).get(no_ack=True)) is not None:
                args, kwargs, _ = message.decode()
                assert kwargs == {"at": "night"}
                found.append((message.headers["task"], args))
        return found


@pytest.fixture
def application(installation: Installation) -> Iterator[Application]:
    made = Application(installation.settings.effective_broker_url)
    yield made
    made.celery.close()


def test_its_queues_may_be_called_as_ours(
    installation: Installation, application: Application
) -> None:
    for queue in OURS:
        application.send(queue, *range(10))
    id = installation.operation(installation.action())

    installation.worker(",".join(OURS), concurrency=2, is_awaited=True)
    installation.tick()

    assert installation.becomes(id, "success")["attempt"] == 1
    sent = [("shop.close_day", [number]) for number in range(10)]
    assert [application.sent(queue) for queue in OURS] == [sent] * 3


def test_a_task_that_we_do_not_know_is_rejected_and_logged_once(
    installation: Installation, application: Application
) -> None:
    application.send("minutebook.quick", 1, 2, 3)
    id = installation.operation(installation.action())
    installation.tick()

    worker = installation.worker()
    installation.becomes(id, "success")

    worker.said("Received unregistered task of type 'shop.close_day'", times=3)


def test_no_control_command_of_an_application_reaches_our_workers(
    installation: Installation, application: Application
) -> None:
    worker = installation.worker(is_awaited=True)
    app = application.celery
    with app.connection_for_write() as connection:
        app.control.shutdown(connection=connection)

    id = installation.operation(installation.action())
    installation.tick()
    installation.becomes(id, "success")
    assert worker.is_alive


HEADERS: list[Any] = [
    {"task": []}, {"task": {"a": 1}}, {"task": None, "id": None}, {"task": "x" * 100_000},
    {"task": EXECUTE_QUICK}, {"task": EXECUTE_QUICK, "id": 7, "eta": "soon"},
    {"task": EXECUTE_QUICK, "id": "1", "timelimit": "no", "retries": {}, "expires": []},
]  # fmt: skip


def test_no_broken_message_ends_a_worker(
    installation: Installation, application: Application
) -> None:
    worker = installation.worker(is_awaited=True)
    with closing(Connection(application.url)) as connection, connection.channel() as channel:
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
