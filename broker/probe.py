"""Look whether the broker takes and gives a message, and how many wait in its queues."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from celery import Celery
from kombu import Connection, Consumer, Exchange, Producer, Queue

from broker.app import BROKER_ERRORS, celery_transport_options, configure, transport_options
from broker.celery_rules import celery_broker_url
from broker.names import UNKNOWN_QUEUE, in_broker
from models.celery_task import QUEUE_PREFIX
from models.errors import BrokerUnavailable
from runtime.config import Settings

WAIT_S = 3
# How long workers of others have to answer.
ANSWERS_S = 1.0


@dataclass(frozen=True, slots=True)
class Probed:
    """How many messages wait in each of our queues, and how many of somebody else were put aside.

    `foreign_workers` are workers of an application that listen to queues of ours.
    """

    depths: dict[str, int]
    put_aside: int
    foreign_workers: tuple[str, ...]


def probe(settings: Settings, queues: Collection[str]) -> Probed:
    """Return what is in the broker, after a message of ours went there and back.

    Raises BrokerUnavailable. What this makes in the broker it removes.
    """
    with _connected(configure(settings).connection_for_write()) as connection:
        depths = {queue: _depth(connection, in_broker(queue)) for queue in queues}
        put_aside = _depth(connection, UNKNOWN_QUEUE)
        return Probed(depths, put_aside, _foreign_workers(settings.effective_broker_url))


def probe_celery_broker(settings: Settings) -> None:
    """Let a message go to the broker of the user's application and back.

    Raises BrokerUnavailable.
    """
    url = celery_broker_url(settings)
    options = celery_transport_options(settings)
    with _connected(Connection(url, connect_timeout=2, transport_options=options)):
        pass


@contextmanager
def _connected(connection: Connection) -> Iterator[Connection]:
    try:
        with connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=WAIT_S)
            _there_and_back(connection)
            yield connection
    except BROKER_ERRORS as error:
        raise BrokerUnavailable(f"{type(error).__name__}: {error}") from error


def _foreign_workers(url: str) -> tuple[str, ...]:
    """Return the workers of applications with Celery's own control that listen to our queues."""
    with Celery("minutehand.doctor", broker=url, set_as_current=False) as anybody:
        anybody.conf.broker_transport_options = transport_options(url)
        asked = anybody.control.inspect(timeout=ANSWERS_S)
        found: dict[str, Any] = asked.active_queues() or {}
    return tuple(
        sorted(
            name
            for name, queues in found.items()
            if any(queue["name"].startswith(QUEUE_PREFIX) for queue in queues)
        )
    )


def _there_and_back(connection: Connection) -> None:
    name = f"minutehand.doctor.{uuid4().hex[:8]}"
    queue = Queue(name, Exchange(""), name, durable=False, auto_delete=True)
    came: list[object] = []
    with connection.channel() as channel:
        bound = queue.bind(channel)
        bound.queue_declare()
        Producer(channel).publish("there", exchange="", routing_key=name, serializer="json")
        with Consumer(channel, [bound], callbacks=[lambda body, _: came.append(body)], no_ack=True):
            connection.drain_events(timeout=WAIT_S)
        bound.delete()
    if came != ["there"]:
        raise OSError("a message did not come back")


def _depth(connection: Connection, queue: str) -> int:
    # A channel of its own: asking for a queue that is not there ends it.
    with connection.channel() as channel:
        try:
            declared: Any = Queue(queue, channel=channel).queue_declare(passive=True)
            return int(declared.message_count)
        except connection.channel_errors:
            return 0
