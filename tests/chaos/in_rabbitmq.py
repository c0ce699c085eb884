"""The messages of a storm in RabbitMQ, and its node as a server of a storm."""

import json
import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from amqp import Message
from amqp.exceptions import NotFound

from models.worker_kinds import OURS
from tests.chaos.in_redis import MOST_REPEATED, NO_MORE, QUEUES
from tests.rabbitmq import RabbitMQ

MOST_SHUFFLED = 500


class Node:
    """A node as the server of a storm."""

    def __init__(self, node: RabbitMQ) -> None:
        self.node = node

    @property
    def url(self) -> str:
        """The broker's URL for Celery."""
        return self.node.url

    def start(self) -> None:
        """Start it, with the data that it has."""
        self.node.start()

    def stop(self, _how: signal.Signals) -> None:
        """Kill it; its data stay."""
        self.node.stop()

    def forget(self) -> None:
        """Remove the data of a stopped node."""
        shutil.rmtree(self.node.folder / "data", ignore_errors=True)

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to its processes."""
        assert self.node.process is not None
        os.killpg(self.node.process.pid, number)


class InRabbitMQ:
    """The messages in one node."""

    def __init__(self, node: RabbitMQ) -> None:
        self.node = node

    def flush(self) -> None:
        """Lose all that waits; the queues stay."""
        with self.node.channel() as channel:
            for queue in QUEUES:
                channel.queue_purge(queue)

    def repeat(self) -> None:
        """Deliver some of those that wait twice more."""
        # Those that were looked at go back when the channel closes.
        with self.node.channel() as channel:
            for queue in QUEUES:
                for message in list(_waiting(channel, queue, MOST_REPEATED)):
                    for _ in range(2):
                        channel.basic_publish(_again(message), routing_key=queue)

    def shuffle(self, random: Random) -> None:
        """Deliver those that wait in another order."""
        with self.node.channel() as channel:
            for queue in QUEUES:
                messages = list(_waiting(channel, queue, MOST_SHUFFLED))
                random.shuffle(messages)
                for message in messages:
                    channel.basic_publish(_again(message), routing_key=queue)
                    channel.basic_ack(message.delivery_tag)

    def put(self, forged: Sequence[tuple[str, str, list[Any]]], _random: Random) -> None:
        """Put messages into queues."""
        with self.node.channel() as channel:
            for queue, task, arguments in forged:
                id = arguments[0]
                message = Message(
                    json.dumps([arguments, {}, NO_MORE]),
                    content_type="application/json",
                    content_encoding="utf-8",
                    application_headers={"lang": "py", "task": task, "id": id, "root_id": id},
                    correlation_id=id,
                    delivery_mode=2,
                )
                channel.basic_publish(message, routing_key=OURS.listed(queue))


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
