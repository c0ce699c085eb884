"""The Celery app, and the publishing of operations in batches with time limits."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from celery import Celery
from celery.loaders.app import AppLoader
from kombu import Connection
from kombu.transport import TRANSPORT_ALIASES
from redis.backoff import NoBackoff
from redis.retry import Retry

from broker.celery_rules import Application, is_amqp
from broker.errors import (
    BROKER_ERRORS,
    Blame,
    blame_of,
    refuse_blocked,
    why_not_taken,
)
from broker.in_use import use
from broker.message_templates import MessageTemplate, RedisChannel, push, template_of
from broker.names import (
    CONTROL_EXCHANGE,
    EVENT_EXCHANGE,
    ORIGIN,
    QUICK,
)
from broker.outage import unavailable
from broker.thread_connection import ThreadConnection
from models.store.operations.reserve import Message
from models.worker_kinds import OURS
from runtime.config import Settings
from runtime.logs.events import EventLog
from runtime.urls import split_sentinel

logger = EventLog("minutebook.broker")

FLUSH_SIZE = 1_000
AMQP = ("amqp", "pyamqp", "amqps")
# Seconds that RabbitMQ may take to confirm a message.
ANSWER_S = 5
# Not in the app's options: a worker's own connection waits for messages.
LIMITS: dict[str, object] = {
    "read_timeout": ANSWER_S,
    "write_timeout": ANSWER_S,
    "on_blocked": refuse_blocked,
}

TRANSPORT_ALIASES["amqps"] = "broker.amqps:NamedServer"


class OwnLoader(AppLoader):
    """Reads no CELERY_CONFIG_MODULE: it is that of the application."""

    def read_configuration(self, _env: str = "") -> dict[str, object]:
        """Return nothing; `configure` sets everything."""
        return {}


class OwnCelery(Celery):
    """Goes to the broker of the settings, not to CELERY_BROKER_URL, the application's."""

    def connection_for_read(self, url: str | None = None, **options: Any) -> Connection:
        """Return a connection for a worker, not open yet."""
        made: Connection = super().connection_for_read(url or self.conf["broker_url"], **options)
        return made

    def connection_for_write(self, url: str | None = None, **options: Any) -> Connection:
        """Return a connection for messages, not open yet."""
        made: Connection = super().connection_for_write(url or self.conf["broker_url"], **options)
        return made


app = OwnCelery("minutebook", loader=OwnLoader, include=["tasks.execute", "tasks.notices"])


def configure(settings: Settings) -> Celery:
    """Point the app at the settings' broker; call it once per process, before use."""
    use(settings)
    url = settings.effective_broker_url
    app.conf.update(
        broker_url=split_sentinel(url)[0],
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        worker_prefetch_multiplier=1,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        # The margin lets a busy machine put operations back.
        worker_soft_shutdown_timeout=settings.worker.stop_grace_s + 4,
        worker_hijack_root_logger=False,
        worker_send_task_events=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        # Redis out of memory answers with an error, which would end the worker.
        broker_channel_error_retry=True,
        broker_connection_timeout=2,
        task_publish_retry_policy={
            "max_retries": 2,
            "interval_start": 0,
            "interval_step": 0.2,
            "interval_max": 0.2,
        },
        task_default_queue=OURS.listed(QUICK),
        control_exchange=CONTROL_EXCHANGE,
        event_exchange=EVENT_EXCHANGE,
        worker_consumer="broker.consumer:RejectingConsumer",
        task_create_missing_queues=True,
        broker_transport_options=transport_options(url),
    )
    return app


# How long the connection to the application's broker may take.
CONNECT_S = 2
# If one Sentinel does not answer, the next one is asked at once.
_SENTINEL = {"socket_timeout": 2, "socket_connect_timeout": 1, "retry": Retry(NoBackoff(), 0)}


def transport_options(url: str) -> dict[str, object]:
    """Return the transport options that limit the time of each broker call."""
    if is_amqp(url):
        return {"confirm_publish": True}
    _, master_name = split_sentinel(url)
    return {
        **({"master_name": master_name, "sentinel_kwargs": _SENTINEL} if master_name else {}),
        # A worker keeps what it has taken to itself: what it loses is sent again, by our tables.
        "ack_emulation": False,
        "socket_timeout": 5,
        "socket_connect_timeout": 2,
        # A worker may send only at every other check, and proxies close connections idle for 30 s.
        "health_check_interval": 10,
        **({} if url.startswith("redis+socket") else {"socket_keepalive": True}),
    }


def celery_connection(application: Application) -> Connection:
    """Return a connection, not open yet, to the broker of a Celery application."""
    url = application.url
    options = transport_options(url) | (LIMITS if application.is_amqp else application.options)
    plain, _ = split_sentinel(url)
    return Connection(plain, connect_timeout=CONNECT_S, transport_options=options)


def connect(connection: Connection) -> None:
    """Open the connection; unlike kombu's `connect()`, retry without a pause of two seconds."""
    connection.ensure_connection(max_retries=1, interval_start=0, reraise_as_library_errors=False)


def publish(messages: Sequence[Message]) -> Iterator[tuple[Sequence[Message], Mapping[str, str]]]:
    """Send messages in chunks; yield each with the queues that took none of it, and why.

    Raises BrokerUnavailable if the broker is down or silent; it may have taken messages of the
    chunk that failed. Never blocks longer than the timeouts of `configure`.
    """
    rest = iter(messages)
    while chunk := list(islice(rest, FLUSH_SIZE)):
        try:
            # Proxies close an idle connection. What a broken one took is sent again, harmlessly.
            refused = kept.ask(partial(_flush, chunk))
        except BROKER_ERRORS as error:
            raise unavailable(error) from error
        yield chunk, refused


def _flush(chunk: Sequence[Message]) -> dict[str, str]:
    """Send one batch; return why queues took none of it. Raises the broker's own errors."""
    sender, refused = _sender(), {}
    channel = sender.producer.channel
    if isinstance(channel, RedisChannel):
        found = push(channel, [(sender.template(message), message) for message in chunk])
    else:
        found = _flush_each(chunk)
    for queue, error in found:
        if blame_of(error) is Blame.BROKER:
            raise error
        refused[queue] = why_not_taken(error)
    return refused


def _flush_each(chunk: Sequence[Message]) -> Iterator[tuple[str, Exception]]:
    """Send a batch to each queue of RabbitMQ; yield the errors."""
    for queue in dict.fromkeys(message.queue for message in chunk):
        its = [message for message in chunk if message.queue == queue]
        try:
            sender = _sender()
            sender.declare(OURS.listed(queue))
            with sender.producer.batch(max_size=len(its) + 1):
                for message in its:
                    publish_one(sender.producer, message)
        except BROKER_ERRORS as error:
            yield queue, error
            # The channel may be closed.
            disconnect()


def publish_one(producer: Any, message: Message) -> None:
    """Publish a message in Celery's protocol 2.

    `send_task` would take twice the time, for routing and log text.
    """
    text = str(message.id)
    task = app.amqp.as_task_v2(
        text,
        message.task,
        args=(text, message.attempt),
        argsrepr=f"({text}, {message.attempt})",
        kwargsrepr="{}",
        origin=ORIGIN,
        ignore_result=True,
    )
    producer.publish(
        task.body,
        exchange="",
        routing_key=OURS.listed(message.queue),
        serializer="json",
        headers=task.headers,
        **task.properties,
    )


def sending_connection() -> Connection:
    """Return a connection to the broker for messages of ours, not open yet."""
    connection = app.connection_for_write()
    if connection.transport_cls in AMQP:
        connection.transport_options = {**(connection.transport_options or {}), **LIMITS}
        # No process would send heartbeats between two batches.
        connection.heartbeat = 0
    return connection


class _Sender:
    """A producer for our messages, and what was declared and made for it."""

    def __init__(self) -> None:
        self.connection = sending_connection()
        connect(self.connection)
        self.producer: Any = app.amqp.Producer(self.connection, auto_declare=False)
        self.declared: set[str] = set()
        self.templates: dict[tuple[str, str], MessageTemplate] = {}

    def declare(self, queue: str) -> None:
        """Declare a queue that is new to it: RabbitMQ drops a message without a queue."""
        if queue not in self.declared:
            app.amqp.queues[queue].bind(self.producer.channel).declare()
            self.declared.add(queue)

    def template(self, message: Message) -> MessageTemplate:
        its = (message.task, message.queue)
        if its not in self.templates:
            self.templates[its] = template_of(self.producer, *its, publish_one)
        return self.templates[its]


kept: ThreadConnection[_Sender] = ThreadConnection()


def kept_producer() -> Any:
    """Return this thread's producer.

    Celery's pool would keep an earlier URL and retry a connection longer than a tick may wait.
    """
    return _sender().producer


def _sender() -> _Sender:
    return kept.link(app.conf["broker_url"], _Sender)


def declare_anew(queue: str) -> None:
    """Let this thread's next message to a queue, by its name in the broker, declare it."""
    if kept.is_open:
        _sender().declared.discard(queue)


def disconnect(*, is_broken: bool = False) -> None:
    """Close the connection of `kept_producer`, without asking the broker if it is broken."""
    kept.drop(is_broken=is_broken)
