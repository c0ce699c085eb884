"""Check that the broker delivers a message, and count the messages in its queues."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from kombu import Connection, Consumer, Exchange, Producer, Queue
from redis.exceptions import ResponseError

from broker.app import (
    AMQP,
    celery_connection,
    configure,
    declare_anew,
    kept,
    kept_producer,
    sending_connection,
)
from broker.celery_rules import Application
from broker.errors import BROKER_ERRORS, FORBIDDEN, Blame, blame_of
from broker.message_templates import RedisChannel
from broker.outage import unavailable
from models.worker_kinds import OURS
from runtime.config import Settings

WAIT_S = 3
# These policies remove any key. The others remove only keys that expire, and messages never do.
EVICTS_ANY_KEY = "allkeys"


@dataclass(frozen=True, slots=True)
class Probed:
    """How many messages wait in each of our queues.

    `evicts` is the policy by which Redis would remove messages when its memory is full; None if it
    would not. `taken` are the names of queues that keys of another type have in Redis.
    """

    depths: dict[str, int]
    evicts: str | None
    taken: tuple[str, ...]


def probe(settings: Settings, queues: Collection[str]) -> Probed:
    """Send a message to the broker and back; return what is in its queues.

    Raises BrokerUnavailable. Leaves nothing in the broker.
    """
    configure(settings)
    with _connected(sending_connection()) as connection:
        found = {queue: (depth(connection, OURS.listed(queue)) or 0) for queue in queues}
        names = [OURS.listed(queue) for queue in queues]
        return Probed(found, _eviction(connection), tuple(_no_queues(connection, names)))


def probe_celery_broker(application: Application) -> None:
    """Send a message to an application's broker and back; raises BrokerUnavailable."""
    with _connected(celery_connection(application), application):
        pass


@contextmanager
def _connected(
    connection: Connection, application: Application | None = None
) -> Iterator[Connection]:
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
        raise unavailable(error, application) from error


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


def _no_queues(connection: Connection, names: Sequence[str]) -> Iterator[str]:
    """Yield the names that belong to keys in Redis that are no queues."""
    channel = connection.default_channel
    if isinstance(channel, RedisChannel):
        for name in names:
            if channel.client.type(name) not in (b"list", b"none"):
                yield name


def depths(queues: Collection[str]) -> Mapping[str, int]:
    """Return how many messages wait in each of our queues; raises BrokerUnavailable.

    A missing queue has none, and is declared anew by the next message. What our account may not
    ask is left out. Reopens a connection that broke since the last look.
    """
    try:
        return kept.ask(lambda: _depths(queues))
    except BROKER_ERRORS as error:
        raise unavailable(error) from error


def _depths(queues: Collection[str]) -> Mapping[str, int]:
    connection = kept_producer().connection
    found: dict[str, int] = {}
    for queue in queues:
        try:
            count = depth(connection, OURS.listed(queue))
        except FORBIDDEN:
            continue
        if count is None:
            declare_anew(OURS.listed(queue))
        found[queue] = count or 0
    return found


def depth(connection: Connection, name: str) -> int | None:
    """Return how many messages a queue holds, None if it is none; raises BROKER_ERRORS."""
    found = messages_and_readers(connection, name)
    return None if found is None else found[0]


def messages_and_readers(connection: Connection, name: str) -> tuple[int, int | None] | None:
    """Return how many messages a queue holds and how many read it, None if it is none.

    Lists of priorities count; what a worker has taken counts where the broker tells. Readers are
    None for a broker that does not count them. Raises BROKER_ERRORS.
    """
    try:
        is_amqp = connection.transport_cls in AMQP
        if not is_amqp and isinstance(connection.default_channel, RedisChannel):
            return _counted_by_redis(connection.default_channel, name), None
        return _counted_by_declaring(connection, name)
    except BROKER_ERRORS as error:
        if isinstance(error, FORBIDDEN) or blame_of(error) is Blame.BROKER:
            raise
        return None


def _counted_by_declaring(connection: Connection, name: str) -> tuple[int, int]:
    # Asking RabbitMQ for a missing queue closes the channel.
    with connection.channel() as channel:
        declared: Any = Queue(name, channel=channel).queue_declare(passive=True)
        return int(declared.message_count), int(declared.consumer_count)


def _counted_by_redis(channel: Any, name: str) -> int:
    """Return how many messages the lists of a queue hold, by one round trip.

    kombu asks twice, by clients of its own: a quarter of what a tick without due actions takes.
    """
    with channel.client.pipeline(transaction=False) as pipeline:
        for priority in channel.priority_steps:
            pipeline.llen(channel._q_for_pri(name, priority))
        return sum(pipeline.execute())


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
