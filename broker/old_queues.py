"""Remove our messages from the queues that Minutebook used up to 0.1.

The operations are sent again to the queues of this release. Messages of an application that uses
the same queue names are kept. Remove this module with the release after the next.
"""

import json
from collections.abc import Callable, Collection
from typing import Any

from amqp.exceptions import ChannelError

from broker.app import ORIGIN, app, connect
from broker.errors import BROKER_ERRORS, FORBIDDEN, unavailable
from broker.names import WORKER_TASKS
from broker.stencils import RedisChannel

PAGE = 500
NO_SUCH_QUEUE = "404"
# The most messages of an application that are held in RabbitMQ before all are put back.
MOST_HELD = 5_000


def remove_ours(queues: Collection[str]) -> int:
    """Remove our messages from the queues and return their number; raises BrokerUnavailable."""
    try:
        with app.connection_for_write() as connection:
            connect(connection)
            is_redis = isinstance(connection.default_channel, RedisChannel)
            remove = _from_redis if is_redis else _from_rabbitmq
            return sum(_if_allowed(remove, connection, queue) for queue in queues)
    except BROKER_ERRORS as error:
        raise unavailable(error) from error


def _if_allowed(remove: Callable[[Any, str], int], connection: Any, queue: str) -> int:
    """Remove nothing from a queue that our account may not read: the account never sent there."""
    try:
        return remove(connection, queue)
    except FORBIDDEN:
        return 0


def _from_redis(connection: Any, queue: str) -> int:
    client = connection.default_channel.client
    if client.type(queue) != b"list":
        return 0
    removed = start = 0
    # New messages arrive at the head, so a message may be seen twice but none is missed.
    for _ in range(0, client.llen(queue), PAGE):
        page = client.lrange(queue, start, start + PAGE - 1)
        ours = [raw for raw in page if _is_ours_in_redis(raw)]
        # A worker of the last release may have taken a message meanwhile.
        gone = sum(int(client.lrem(queue, 1, raw)) for raw in ours)
        removed += gone
        start += len(page) - gone
    return removed


def _is_ours_in_redis(raw: bytes) -> bool:
    try:
        return _is_ours(json.loads(raw)["headers"])
    except (ValueError, KeyError, TypeError):
        return False


def _from_rabbitmq(connection: Any, queue: str) -> int:
    removed = held = 0
    # Closing the channel puts unacknowledged messages back in their place.
    with connection.channel() as channel:
        try:
            channel.queue_declare(queue=queue, passive=True)
        except ChannelError as error:
            # Not `NotFound`: queues in memory, which tests use, raise the error of the channel.
            if str(error.reply_code) != NO_SUCH_QUEUE:
                raise
            return 0
        while held < MOST_HELD and (message := channel.basic_get(queue)) is not None:
            if _is_ours(message.properties.get("application_headers") or {}):
                channel.basic_ack(message.delivery_tag)
                removed += 1
            else:
                held += 1
    return removed


def _is_ours(headers: Any) -> bool:
    return headers.get("task") in WORKER_TASKS and headers.get("origin") == ORIGIN
