"""Tasks by an exchange of RabbitMQ: sent if a queue is bound to their route, otherwise kept."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa
from amqp.exceptions import NotFound
from kombu import Connection

from broker.celery_rules import application_of
from broker.errors import NoQueue
from broker.external_link import kept, link_to
from broker.in_use import settings_in_use
from models.sql import database_now
from models.store import tenants
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import external_send, reserve
from models.trust import Trust
from runtime.config import Settings
from scheduler.sweep import dispatch_ready
from tests.celery_messages import RULES, TASK, celery_action, make_due, on_rabbitmq_with
from tests.factories import row_of, update_operation
from tests.rabbitmq import RabbitMQ
from tests.transactions import act

# As an application may declare its own; RabbitMQ refuses another declaration.
QUORUM = {"x-queue-type": "quorum"}
FULL = {"x-max-length": 0, "x-overflow": "reject-publish"}
VIDEO = {"exchange": "media", "routing_key": "video.short"}


@pytest.fixture
def engine(rabbitmq: RabbitMQ, home_of: Callable[[str], Settings]) -> Iterator[sa.Engine]:
    """An installation on RabbitMQ, whose application has an exchange with one bound queue."""
    with on_rabbitmq_with("plain", rabbitmq, home_of("sqlite")) as engine:
        with rabbitmq.channel() as channel:
            channel.exchange_delete("media")
            for queue in ("videos", "full"):
                channel.queue_delete(queue)
            channel.exchange_declare("media", "topic", durable=True, auto_delete=False)
            channel.queue_declare("videos", durable=True, auto_delete=False, arguments=QUORUM)
            channel.queue_bind("videos", "media", "video.*")
        yield engine


def due(engine: sa.Engine, step: dict[str, Any], number: int = 0) -> UUID:
    return make_due(engine, celery_action(engine, step=step, name=f"task {number}"))


def sent(rabbitmq: RabbitMQ, queue: str = "videos") -> list[str]:
    """Take what waits in a queue; return the ids."""
    found = []
    with rabbitmq.channel() as channel:
        while (message := channel.basic_get(queue, no_ack=True)) is not None:
            assert message.headers["task"] == TASK
            found.append(message.headers["id"])
    return found


def begun(engine: sa.Engine) -> list[external_send.Handed]:
    """Begin to send what is due, by an exchange first."""
    with engine.begin() as connection:
        messages = reserve.reserve_sendable(connection, 10)
        sent = external_send.begin(connection, messages, RULES, NO_ALERTS)
        return sorted(sent, key=lambda one: one.queue)


def is_kept(engine: sa.Engine, id: UUID) -> bool:
    """Return whether a later tick sends an operation that the broker refused."""
    row = row_of(engine, id)
    return (row["state"], row["send_started_at"], row["sendings"]) == ("pending", None, 0)


def test_a_task_goes_to_the_queues_of_its_route(engine: sa.Engine, rabbitmq: RabbitMQ) -> None:
    id = due(engine, {**VIDEO, "priority": 3})

    assert dispatch_ready(engine).error is None

    row = row_of(engine, id)
    assert (row["state"], row["queue"]) == ("handed_over", "media/video.short")
    assert sent(rabbitmq) == [str(id)]


def test_a_connection_that_rabbitmq_closed_while_it_was_idle_holds_up_no_task(
    engine: sa.Engine, rabbitmq: RabbitMQ
) -> None:
    before = due(engine, {"queue": "plain"})
    dispatch_ready(engine)
    rabbitmq.stop()
    rabbitmq.start()
    after = due(engine, {"queue": "plain"}, 1)

    assert dispatch_ready(engine).error is None

    assert sent(rabbitmq, "plain") == [str(before), str(after)]


def test_a_full_queue_that_refuses_more_keeps_back_its_own_tasks_alone(
    engine: sa.Engine, rabbitmq: RabbitMQ, caplog: pytest.LogCaptureFixture
) -> None:
    with rabbitmq.channel() as channel:
        channel.queue_declare("full", durable=True, auto_delete=False, arguments=FULL)
    refused, other = due(engine, {"queue": "full"}), due(engine, VIDEO, 1)

    assert dispatch_ready(engine).error is None

    assert is_kept(engine, refused)
    assert sent(rabbitmq) == [str(other)]
    assert "nothing was sent to full: its queue is full" in caplog.text


def test_what_one_of_two_queues_refuses_is_sent_once(engine: sa.Engine, rabbitmq: RabbitMQ) -> None:
    """RabbitMQ refuses a message if one queue does, and gives it to the others."""
    with rabbitmq.channel() as channel:
        channel.queue_declare("full", durable=True, auto_delete=False, arguments=FULL)
        channel.queue_bind("full", "media", "video.*")
    id = due(engine, VIDEO)

    for _ in range(2):
        assert dispatch_ready(engine).error is None
        update_operation(engine, id, not_before=database_now(-1.0))

    assert sent(rabbitmq) == [str(id)]
    assert act(engine, external_send.decide_doubtful, 10, NO_ALERTS) == [(id, "failed")]
    assert row_of(engine, id)["reason"] == "send uncertain"


@pytest.mark.parametrize(
    "step",
    [
        pytest.param({"exchange": "media", "routing_key": "audio"}, id="no_queue_is_bound"),
        pytest.param({"exchange": "gone", "routing_key": "video"}, id="no_such_exchange"),
        pytest.param({"queue": "gone"}, id="no_such_queue"),
    ],
)
def test_what_reaches_no_queue_waits_alone(
    engine: sa.Engine, rabbitmq: RabbitMQ, step: dict[str, Any]
) -> None:
    lost, taken = due(engine, step), due(engine, VIDEO, 1)

    assert dispatch_ready(engine).error is None

    assert is_kept(engine, lost)
    assert row_of(engine, taken)["state"] == "handed_over"
    assert sent(rabbitmq) == [str(taken)]
    with rabbitmq.channel() as channel, pytest.raises(NotFound):
        # It was asked for, never declared.
        channel.exchange_declare("gone", "direct", passive=True)


def test_what_disappears_in_between_took_nothing(engine: sa.Engine, rabbitmq: RabbitMQ) -> None:
    due(engine, {"queue": "videos"})
    due(engine, VIDEO, 1)
    by_exchange, by_queue = begun(engine)
    link = link_to(application_of(settings_in_use()))
    with rabbitmq.channel() as channel:
        channel.exchange_delete("media")
        channel.queue_delete("videos")

    with pytest.raises(NoQueue):
        link.send(by_queue)
    with pytest.raises(NotFound):
        link.send(by_exchange)


def test_each_thread_sends_over_its_own_connection(engine: sa.Engine, rabbitmq: RabbitMQ) -> None:
    def sent_there() -> Connection:
        link = link_to(application_of(settings_in_use()))
        link.send(two)
        kept.drop()
        return link.connection

    due(engine, VIDEO)
    due(engine, VIDEO, 1)
    one, two = begun(engine)
    here = link_to(application_of(settings_in_use()))
    with ThreadPoolExecutor(1) as pool:
        there = pool.submit(sent_there).result()

    assert there is not here.connection
    here.send(one)
    assert len(sent(rabbitmq)) == 2


def test_an_exchange_gets_nothing_without_trust(engine: sa.Engine, rabbitmq: RabbitMQ) -> None:
    id = due(engine, VIDEO)
    act(engine, tenants.set_trust, 1, Trust(tasks=("*",)))

    dispatch_ready(engine)

    row = row_of(engine, id)
    assert (row["state"], row["reason"]) == ("failed", "not allowed")
    assert "its exchange 'media' is not for this restricted small app" in row["error"]
    assert sent(rabbitmq) == []
