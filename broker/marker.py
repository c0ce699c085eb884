"""A mark in the broker that shows whether the broker lost messages.

In Redis it is a number that each look increments: after a FLUSHALL or the restore of an older
snapshot it is not above its last value. In RabbitMQ it is a durable queue with one persistent
message. Its name is random, so that installations do not share marks.
"""

from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

from amqp.exceptions import ChannelError, NotFound
from redis.exceptions import ResponseError

from broker.app import disconnect, kept, kept_producer
from broker.errors import BROKER_ERRORS, unavailable
from broker.stencils import RedisChannel
from runtime.logs.events import EventLog

logger = EventLog("minutebook.broker")

PREFIX = "minutebook.marker."
# Answers of a broker that does not let us read the mark; they do not show a loss.
REFUSED = (ResponseError, ChannelError)


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark, and its number as it was last seen."""

    name: str
    number: int


def look(mark: Mark) -> Mark | None:
    """Return the current mark, None if the broker lost it; raises BrokerUnavailable.

    Takes one round trip. Reopens a connection that broke since the last look.
    """
    try:
        return kept.ask(lambda: _look(mark))
    except BROKER_ERRORS as error:
        raise unavailable(error) from error


def _look(mark: Mark) -> Mark | None:
    try:
        producer = kept_producer()
        if isinstance(producer.channel, RedisChannel):
            number = int(producer.channel.client.incr(PREFIX + mark.name))
            return Mark(mark.name, number) if number > mark.number else None
        queue = producer.channel.queue_declare(queue=PREFIX + mark.name, passive=True)
    except NotFound:
        disconnect()
        return None
    except REFUSED as error:
        logger.warning(
            "broker_mark_unreadable", "cannot see whether the broker lost messages: {error}", error
        )
        disconnect()
        return mark
    return mark if queue.message_count else None


def make() -> Mark | None:
    """Return a new mark, None if the broker refuses to keep one; raises BrokerUnavailable."""
    disconnect()  # a new connection declares the queues again
    name = uuid4().hex
    try:
        producer = kept_producer()
        if isinstance(producer.channel, RedisChannel):
            return Mark(name, int(producer.channel.client.incr(PREFIX + name)))
        producer.channel.queue_declare(queue=PREFIX + name, durable=True, auto_delete=False)
        producer.publish(name, exchange="", routing_key=PREFIX + name, serializer="json")
        return Mark(name, 1)
    except REFUSED as error:
        logger.warning(
            "broker_mark_refused",
            "the broker refuses the mark that shows a loss of messages: {error}",
            error,
        )
        disconnect()
        return None
    except BROKER_ERRORS as error:
        disconnect(is_broken=True)
        raise unavailable(error) from error


def forget(mark: Mark) -> None:
    """Remove the rest of a mark, if the broker allows it."""
    with suppress(*BROKER_ERRORS):
        producer = kept_producer()
        if isinstance(producer.channel, RedisChannel):
            producer.channel.client.delete(PREFIX + mark.name)
        else:
            producer.channel.queue_delete(queue=PREFIX + mark.name)
