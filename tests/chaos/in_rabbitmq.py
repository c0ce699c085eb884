"""The messages of a storm in RabbitMQ."""

from collections.abc import Iterator
from random import Random
from typing import Any

from amqp import Message
from amqp.exceptions import NotFound

from tests.chaos.in_redis import MOST_REPEATED, QUEUES
from tests.rabbitmq import RabbitMQ

MOST_SHUFFLED = 500


class InRabbitMQ:
    def __init__(self, node: RabbitMQ) -> None:
        self.node = node

    def flush(self) -> None:
        """Lose all that waits; the queues stay."""
        with self.node.channel() as channel:
            for queue in QUEUES:
                channel.queue_purge(queue)

    def repeat(self) -> None:
        # Those that were looked at go back when the channel closes.
        with self.node.channel() as channel:
            for queue in QUEUES:
                for message in list(_waiting(channel, queue, MOST_REPEATED)):
                    for _ in range(2):
                        channel.basic_publish(_again(message), routing_key=queue)

    def shuffle(self, random: Random) -> None:
        with self.node.channel() as channel:
            for queue in QUEUES:
                messages = list(_waiting(channel, queue, MOST_SHUFFLED))
                random.shuffle(messages)
                for message in messages:
                    channel.basic_publish(_again(message), routing_key=queue)
                    channel.basic_ack(message.delivery_tag)


def _waiting(channel: Any, queue: str, most: int) -> Iterator[Any]:
    for _ in range(most):
        try:
            message = channel.basic_get(queue)
        except NotFound:
            return
        if message is None:
            return
        yield message


def _again(message: Any) -> Message:
    return Message(message.body, **message.properties)
