"""Connections to the broker of the user's Celery application, to send and to see its queues."""

from collections.abc import Collection
from typing import Any

from amqp.serialization import dumps
from kombu import Producer

from broker.app import app, celery_connection, connect
from broker.celery_rules import Application
from broker.errors import BROKER_ERRORS, FORBIDDEN, NoQueue
from broker.names import ORIGIN
from broker.outage import unavailable
from broker.probe import messages_and_readers
from broker.thread_connection import ThreadConnection
from minutebook.followed import HEADER
from models.store.operations.external_send import Handed

# A header that beat writes.
AS_BEAT = {"celery_beat_task": True}
# In bytes: what else stands in the frame of a message's headers in AMQP.
BESIDE_HEADERS = 2_048


class Link:
    """A connection to the broker of a Celery application; it never retries."""

    def __init__(self, application: Application) -> None:
        self.connection = celery_connection(application)
        connect(self.connection)
        channel: Any = self.connection.default_channel
        self.producer: Any = Producer(channel, auto_declare=False)
        self.is_amqp = application.is_amqp
        self.is_returned = False
        if self.is_amqp:
            channel.events["basic_return"].add(self._on_return)

    def _on_return(self, *_returned: object) -> None:
        self.is_returned = True

    def ping(self) -> None:
        """Wait for an answer: nothing is sent over a connection that was closed meanwhile."""
        channel = self.producer.channel
        if self.is_amqp:
            # A harmless call: it sets a limit of consumers, which this channel never has.
            channel.basic_qos(0, 1, False)
        else:
            channel.client.ping()

    def send(self, one: Handed) -> None:
        """Send a task; raises one of SENDING_ERRORS."""
        self.is_returned = False
        self._publish(one)
        # The broker gives a message back before it confirms it.
        if self.is_returned:
            raise NoQueue("the broker has no queue for it; start a worker")

    def _publish(self, one: Handed) -> None:
        text, task = str(one.id), one.hand_over
        expires_s = None if task.expires is None else task.expires.total_seconds()
        made = app.amqp.as_task_v2(
            text, task.task, task.args, task.kwargs, origin=ORIGIN, expires=expires_s
        )
        ours = {"ignore_result": task.ignore_result, HEADER: one.header}
        headers = {**task.headers, **made.headers, **AS_BEAT, **ours}
        self._check(headers)
        self.producer.publish(
            made.body,
            exchange=task.exchange or "",
            routing_key=task.routing_key if task.exchange else one.queue,
            serializer="json",
            headers=headers,
            priority=task.priority,
            **made.properties,
            **({"mandatory": True} if self.is_amqp else {}),
        )

    def _check(self, headers: dict[str, Any]) -> None:
        """Raise ValueError for headers that one frame cannot hold: RabbitMQ would hang up."""
        if not self.is_amqp:
            return
        most = self.connection.connection.frame_max - BESIDE_HEADERS
        size = len(dumps("F", (headers,)))
        if size > most:
            raise ValueError(f"its headers have {size:,} bytes, and the broker takes {most:,}")


kept: ThreadConnection[Link] = ThreadConnection()


def link_to(application: Application) -> Link:
    """Return this thread's connection to the broker of an application."""
    # The options name the broker's lists.
    key = (application.url, str(application.options))
    return kept.link(key, lambda: Link(application))


def queues_of(
    application: Application, names: Collection[str]
) -> dict[str, tuple[int, int | None]]:
    """Return how many messages wait in each of these queues, and how many workers read it.

    Readers are None for a broker that does not count them. A missing queue is empty; what our
    account may not ask is left out. Raises BrokerUnavailable.
    """
    try:
        return kept.ask(lambda: _queues_of(application, names))
    except BROKER_ERRORS as error:
        raise unavailable(error, application) from error


def _queues_of(
    application: Application, names: Collection[str]
) -> dict[str, tuple[int, int | None]]:
    found: dict[str, tuple[int, int | None]] = {}
    if not names:
        link_to(application).ping()
    for name in names:
        try:
            seen = messages_and_readers(link_to(application).connection, name)
        except FORBIDDEN:
            continue
        found[name] = seen or (0, None)
    return found
