"""A broker as installations have it: an application's too, with few rights, or quorum queues."""

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import product
from typing import Any

import pytest
from amqp.exceptions import PreconditionFailed
from celery import Celery
from kombu import Exchange, Producer, Queue

from broker.probe import probe
from models.worker_kinds import EXECUTE_QUICK
from runtime.config import Settings
from tests.acceptance.installation import Installation, installed
from tests.acceptance.processes import ROOT, until
from tests.rabbitmq import RabbitMQ, running_node
from tests.servers import Broker

PAGE = (ROOT / "docs/how-to/operate/secrets-and-tls.md").read_text(encoding="utf-8")
[OF_REDIS] = re.findall(r"^redis-cli (ACL SETUSER minutebook .*?)^```", PAGE, re.M | re.S)
[OF_RABBITMQ] = re.findall(r"^rabbitmqctl (.*?)^```", PAGE, re.M | re.S)
ACCOUNT = "minutebook:PASSWORD@"
# What `default_queue_type = quorum` in rabbitmq.conf sets, as the handbook has it.
QUORUM = "-rabbit default_queue_type rabbit_quorum_queue"
HEADERS: list[Any] = [
    {"task": []}, {"task": {"a": 1}}, {"task": None, "id": None}, {"task": "x" * 100_000},
    {"task": EXECUTE_QUICK}, {"task": EXECUTE_QUICK, "id": 7, "eta": "soon"},
    {"task": EXECUTE_QUICK, "id": "1", "timelimit": "no", "retries": {}, "expires": []},
]  # fmt: skip


@pytest.fixture(params=["redis", "rabbitmq"])
def installation(
    request: pytest.FixtureRequest, home_of: Callable[[str], Settings], broker: Broker
) -> Iterator[Installation]:
    """An installation whose broker an application has too."""
    is_redis = request.param == "redis"
    url = broker.url if is_redis else request.getfixturevalue("rabbitmq").url
    with installed(home_of("sqlite"), broker, url) as made:
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


@pytest.fixture
def redis_url(broker: Broker) -> Iterator[str]:
    """Redis, where our account has only the rights that the handbook names."""
    with broker.client() as client:
        client.execute_command(*shlex.split(OF_REDIS))
        yield broker.url.replace("//", f"//{ACCOUNT}", 1)
        client.execute_command("ACL", "DELUSER", "minutebook")


@pytest.fixture
def rabbitmq_url(rabbitmq: RabbitMQ) -> Iterator[str]:
    rabbitmq.control("add_user", "minutebook", "PASSWORD")
    rabbitmq.control(*shlex.split(OF_RABBITMQ))
    yield rabbitmq.url.replace("guest:guest@", ACCOUNT)
    rabbitmq.control("delete_user", "minutebook")


@pytest.fixture
def quorum_url() -> Iterator[str]:
    """RabbitMQ, whose queues are quorum queues by default."""
    with running_node(QUORUM) as node:
        with node.channel() as channel:
            channel.queue_declare("asked", durable=True, auto_delete=False)
        classic = {"x-queue-type": "classic"}
        try:
            with node.channel() as channel:
                channel.queue_declare("asked", durable=True, auto_delete=False, arguments=classic)
        except PreconditionFailed:
            yield node.url
        else:
            pytest.skip("this RabbitMQ has no default type of queues")


@pytest.mark.parametrize("broker_url", ["redis_url", "rabbitmq_url", "quorum_url"])
def test_operations_are_sent_and_run_and_doctor_finds_the_broker_sound(
    request: pytest.FixtureRequest,
    home_of: Callable[[str], Settings],
    broker: Broker,
    broker_url: str,
) -> None:
    url = request.getfixturevalue(broker_url)
    with installed(home_of("sqlite"), broker, url) as installation:
        daemon = installation.daemon()
        worker = installation.worker(is_awaited=True)
        due = installation.due_action()
        row = installation.awaited_row(due)

        assert installation.all_end([row["id"]]) == ["success"]
        assert probe(installation.settings, ["quick"]).evicts is None
        until(lambda: len(installation.ticks()) > 1, "it ticks again")
        refused = ("NoPermission", "ACCESS_REFUSED", "does not let us")
        assert not [text for text in refused if text in daemon.text() + worker.text()]
