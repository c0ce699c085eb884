"""Look whether the broker takes and gives a message, and how many wait in its queues."""

from collections.abc import Collection
from typing import Any
from uuid import uuid4

from kombu import Connection, Consumer, Exchange, Producer, Queue

from broker.app import BROKER_ERRORS, configure
from broker.names import in_broker
from models.errors import BrokerUnavailable
from runtime.config import Settings

WAIT_S = 3


def probe(settings: Settings, queues: Collection[str]) -> dict[str, int]:
    """Return how many messages wait in each queue, after one of ours went there and back.

    Raises BrokerUnavailable. What this makes in the broker it removes.
    """
    try:
        with configure(settings).connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=WAIT_S)
            _there_and_back(connection)
            return {queue: _depth(connection, in_broker(queue)) for queue in queues}
    except BROKER_ERRORS as error:
        raise BrokerUnavailable(f"{type(error).__name__}: {error}") from error


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
