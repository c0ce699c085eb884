"""Check that the broker delivers a message, and count the messages in its queues."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from celery import Celery
from kombu import Connection, Consumer, Exchange, Producer, Queue
from redis.exceptions import ResponseError

from broker.app import celery_connection, configure, sending_connection, transport_options
from broker.celery_rules import Application
from broker.depths import depth
from broker.errors import BROKER_ERRORS, FORBIDDEN, unavailable
from broker.stencils import RedisChannel
from models.carriers import OURS
from runtime.config import Settings
from runtime.urls import split_sentinel

WAIT_S = 3
# How many seconds the workers of other applications have to answer.
ANSWERS_S = 1.0
# These policies remove any key. The others remove only keys that expire, and messages never do.
EVICTS_ANY_KEY = "allkeys"


@dataclass(frozen=True, slots=True)
class Probed:
    """How many messages wait in each of our queues.

    `foreign_workers` are another application's workers that consume our queues. `evicts` is the
    policy by which Redis would remove messages when its memory is full; None if it would not.
    """

    depths: dict[str, int]
    foreign_workers: tuple[str, ...]
    evicts: str | None


def probe(settings: Settings, queues: Collection[str]) -> Probed:
    """Send a message to the broker and back; return what is in its queues.

    Raises BrokerUnavailable. Leaves nothing in the broker.
    """
    configure(settings)
    with _connected(sending_connection()) as connection:
        depths = {queue: (depth(connection, OURS.listed(queue)) or 0) for queue in queues}
        foreign = _foreign_workers(settings.effective_broker_url)
        return Probed(depths, foreign, _eviction(connection))


def probe_celery_broker(application: Application) -> None:
    """Send a message to an application's broker and back; raises BrokerUnavailable."""
    with _connected(celery_connection(application)):
        pass


@contextmanager
def _connected(connection: Connection) -> Iterator[Connection]:
    try:
        with connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=WAIT_S)
            try:
                _there_and_back(connection)
            except BROKER_ERRORS:
                # A broken connection might not confirm its close, either.
                connection.collect()
                raise
            yield connection
    except BROKER_ERRORS as error:
        raise unavailable(error) from error


def _eviction(connection: Connection) -> str | None:
    channel = connection.default_channel
    if not isinstance(channel, RedisChannel):
        return None
    try:
        memory = channel.client.info("memory")
    except ResponseError:
        # Our account may not ask.
        return None
    policy = str(memory.get("maxmemory_policy", ""))
    return policy if memory.get("maxmemory") and policy.startswith(EVICTS_ANY_KEY) else None


def _foreign_workers(url: str) -> tuple[str, ...]:
    """Return the workers with Celery's default control exchange that consume our queues.

    Return none if our account may not use that exchange.
    """
    plain, _ = split_sentinel(url)
    with Celery("minutebook.doctor", broker=plain, set_as_current=False) as inspector:
        inspector.conf.broker_transport_options = transport_options(url)
        asked = inspector.control.inspect(timeout=ANSWERS_S)
        try:
            found: dict[str, Any] = asked.active_queues() or {}
        except FORBIDDEN:
            return ()
    return tuple(
        sorted(
            name
            for name, queues in found.items()
            if any(queue["name"].startswith(OURS.prefix) for queue in queues)
        )
    )


def _there_and_back(connection: Connection) -> None:
    name = f"minutebook.doctor.{uuid4().hex[:8]}"
    queue = Queue(name, Exchange(""), name, durable=False, auto_delete=True)
    came: list[object] = []
    channel = connection.default_channel
    bound = queue.bind(channel)
    bound.queue_declare()
    Producer(channel).publish("there", exchange="", routing_key=name, serializer="json")
    with Consumer(channel, [bound], callbacks=[lambda body, _: came.append(body)], no_ack=True):
        connection.drain_events(timeout=WAIT_S)
    bound.delete()
    if came != ["there"]:
        raise OSError("a message did not come back")
