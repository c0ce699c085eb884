"""Queues of ours under the names that they had in the broker up to 0.1: emptied of our messages.

What they were about is sent anew under the names of now. Messages of an application that has a
queue of such a name stay where they are. To be removed with the release after the next.
"""

import json
from collections.abc import Collection
from typing import Any

from amqp.exceptions import NotFound

from broker.app import BROKER_ERRORS, ORIGIN, app, connect
from broker.names import WORKER_TASKS
from models.errors import BrokerUnavailable

PAGE = 500
# So many messages of an application are held at a time, in RabbitMQ, until all are put back.
MOST_HELD = 5_000


def remove_ours(queues: Collection[str]) -> int:
    """Remove our messages from these queues; return how many; raises BrokerUnavailable."""
    try:
        with app.connection_for_write() as connection:
            connect(connection)
            is_redis = connection.transport.driver_type == "redis"
            remove = _from_redis if is_redis else _from_rabbitmq
            return sum(remove(connection, queue) for queue in queues)
    except BROKER_ERRORS as error:
        raise BrokerUnavailable(f"{type(error).__name__}: {error}") from error


def _from_redis(connection: Any, queue: str) -> int:
    client = connection.default_channel.client
    if client.type(queue) != b"list":
        return 0
    removed = start = 0
    # What comes meanwhile comes at the head: it is seen again, nothing is passed over.
    for _ in range(0, client.llen(queue), PAGE):
        page = client.lrange(queue, start, start + PAGE - 1)
        ours = [raw for raw in page if _is_ours_in_redis(raw)]
        # One that a worker of the last release has taken meanwhile is no longer there.
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
    # Its end puts back what is not acknowledged, where it was.
    with connection.channel() as channel:
        try:
            channel.queue_declare(queue=queue, passive=True)
        except NotFound:
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
