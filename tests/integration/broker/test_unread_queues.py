"""Ticks see the queues of the application to which actions send tasks, in either broker."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
import sqlalchemy as sa
from kombu import Connection

from broker.app import configure
from models.store import celery_queues, installation_facts
from models.store.celery_queues import MOST, Watched
from runtime.config import Settings
from scheduler.sweep import dispatch_ready
from tests.celery_messages import NOON, allowing, celery_action, make_due, on_rabbitmq_with
from tests.rabbitmq import RabbitMQ
from tests.servers import Broker
from tests.ticks import MINUTE, run_tick
from tests.transactions import act


def watched(engine: sa.Engine) -> dict[str, Watched]:
    return dict(act(engine, installation_facts.known).celery_queues)


def send(engine: sa.Engine, minute: int, step: dict[str, str] | None = None) -> None:
    step, when = step or {"queue": "reports"}, {"cron_rule": "0 3 1 1 *", "timezone": "UTC"}
    make_due(engine, celery_action(engine, step=step, name=f"task {minute}", when=when))
    assert dispatch_ready(engine).count == 1


def look(engine: sa.Engine, minute: int) -> Watched:
    """Tick; return what is known of the queue then."""
    report = run_tick(engine, NOON + minute * MINUTE)
    assert report.application_broker_error is None
    return watched(engine)["reports"]


@pytest.fixture
def with_tasks(settings: Settings) -> Iterator[None]:
    configure(allowing(settings, "shop.*"))
    yield
    configure(settings)


@pytest.fixture
def in_rabbitmq(rabbitmq: RabbitMQ, home_of: Callable[[str], Settings]) -> Iterator[sa.Engine]:
    """An installation on RabbitMQ, whose application has an empty queue."""
    with on_rabbitmq_with("reports", rabbitmq, home_of("sqlite")) as engine:
        yield engine


def test_a_queue_of_redis_grows_unread(engine: sa.Engine, broker: Broker, with_tasks: None) -> None:
    with broker.client() as client:
        client.delete("reports")
        send(engine, 0)
        assert look(engine, 0) == Watched(1, None, 0, NOON)
        send(engine, 1)
        send(engine, 2)

        assert look(engine, 2) == Watched(3, None, 0, NOON)

        client.rpop("reports")
        assert look(engine, 3) == Watched(2, None, 2, None)
        client.delete("reports")
        assert look(engine, 4) == Watched()


def test_rabbitmq_counts_the_readers_of_a_queue(in_rabbitmq: sa.Engine, rabbitmq: RabbitMQ) -> None:
    send(in_rabbitmq, 0)
    send(in_rabbitmq, 1)

    assert look(in_rabbitmq, 0) == Watched(2, 0, 0, NOON)

    with closing(Connection(rabbitmq.url)) as connection:
        channel: Any = connection.channel()
        channel.basic_qos(0, 1, False)
        channel.basic_consume("reports", callback=lambda _message: None)
        # It has one, and the other waits.
        assert look(in_rabbitmq, 1) == Watched(1, 1, 1, None)
    # Both wait again.
    assert look(in_rabbitmq, 2) == Watched(2, 0, 1, NOON + 2 * MINUTE)


def test_a_missing_queue_of_rabbitmq_is_empty(in_rabbitmq: sa.Engine, rabbitmq: RabbitMQ) -> None:
    send(in_rabbitmq, 0)
    with rabbitmq.channel() as channel:
        channel.queue_delete("reports")

    assert look(in_rabbitmq, 0) == Watched()


def test_queues_behind_an_exchange_are_unknown(in_rabbitmq: sa.Engine, rabbitmq: RabbitMQ) -> None:
    with rabbitmq.channel() as channel:
        channel.queue_bind("reports", "amq.topic", "report.*")
    send(in_rabbitmq, 0, {"exchange": "amq.topic", "routing_key": "report.daily"})

    assert watched(in_rabbitmq) == {}


def test_so_many_queues_are_watched(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        for number in range(MOST + 1):
            celery_queues.note(connection, [f"queue {number}"])

    assert len(watched(engine)) == MOST


def test_what_another_process_noted_meanwhile_is_kept(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        celery_queues.note(connection, ["reports"])
        celery_queues.store(connection, None, {"orders": Watched(7)})

    assert watched(engine) == {"reports": Watched()}


@pytest.mark.parametrize("text", [None, "", "[]", '{"reports": 7}', '{"reports": {"length": "x"}}'])
def test_what_cannot_be_read_is_unknown(text: str | None) -> None:
    assert set(celery_queues.read(text).values()) <= {Watched()}
