"""Fuzzed items of a queue: a worker's consumer hands each to its pool, or sets it aside."""

import pickle
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from celery import signals
from celery.app.trace import reset_worker_optimizations
from celery.concurrency.base import BasePool
from celery.exceptions import SecurityWarning
from kombu import Consumer
from kombu.common import QoS

from broker.app import configure, disconnect
from broker.kombu_patch import survive_the_broker, transport
from broker.names import UNKNOWN_QUEUE
from models.carriers import OURS
from runtime.config import load_settings
from tests.servers import Broker, free_port, temporary_folder

QUEUE = OURS.listed("quick")
DRAIN_S = 5


class Pool(BasePool):
    """A pool that receives what a process of a real one would, as bytes, and runs nothing."""

    def on_apply(self, target: Any, args: Any = None, kwargs: Any = None, **options: Any) -> None:
        """Take a request's task."""
        pickle.dumps((args, kwargs, options.get("timeout"), options.get("soft_timeout")))


@contextmanager
def opened() -> Iterator[Callable[[bytes], None]]:
    """Yield the check of items, with a broker and the consumer of a worker of its own."""
    folder = temporary_folder()
    server = Broker(folder, free_port())
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        server.start()
        stack.callback(server.stop)
        stack.callback(disconnect)
        stack.enter_context(_kombu_as_before())
        survive_the_broker()
        yield stack.enter_context(_worker(server))


@contextmanager
def _worker(server: Broker) -> Iterator[Callable[[bytes], None]]:
    """Yield what lets a worker's consumer take one item."""
    app = configure(load_settings(server.folder / "home", {"SCHED_BROKER_URL": server.url}))
    consumer = _consumer_of(app)
    connection, client = app.connection_for_read(), server.client()
    with closing(connection), closing(client):
        own = Consumer(
            connection.channel(),
            queues=[app.amqp.queues[QUEUE]],
            on_message=consumer.create_task_handler(),
            accept=["json"],
        )
        own.qos(prefetch_count=0)
        own.consume()
        taken: list[Any] = []

        def take(request: Any) -> None:
            request.execute_using_pool(consumer.pool)
            request.acknowledge()
            taken.append(request)

        consumer.on_task_request, consumer.pool = take, Pool(app=app)
        consumer.update_strategies()

        def check(given: bytes) -> None:
            taken.clear()
            client.delete(UNKNOWN_QUEUE)
            client.lpush(QUEUE, given)
            connection.drain_events(timeout=DRAIN_S)
            ends = (len(taken), client.llen(UNKNOWN_QUEUE))
            assert sum(ends) == 1, f"taken, put aside: {ends}"
            assert not consumer.timer.schedule.queue, "it waits for a time of its own"

        yield check
        own.cancel()


def _consumer_of(app: Any) -> Any:
    """Return the consumer of a worker that is not started."""
    signals.setup_logging.connect(_no_logs, weak=False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SecurityWarning)
            options = {"without_gossip": True, "without_mingle": True, "quiet": True}
            consumer = app.Worker(pool="solo", queues=[QUEUE], **options).consumer
    finally:
        signals.setup_logging.disconnect(_no_logs)
        reset_worker_optimizations(app)
    consumer.event_dispatcher = None
    consumer.qos = QoS(lambda **_: None, 1)
    return consumer


def _no_logs(**_: object) -> None:
    """Keep Celery from setting up logs: it does so unless this signal has a receiver."""


@contextmanager
def _kombu_as_before() -> Iterator[None]:
    """Take the patches of kombu back at the end."""
    kept = [
        (owner, name, getattr(owner, name))
        for owner, name in (
            (transport.Channel, "_connparams"),
            (transport.Transport, "_deliver"),
            (transport, "bytes_to_str"),
            (transport, "loads"),
        )
    ]
    try:
        yield
    finally:
        for owner, name, value in kept:
            setattr(owner, name, value)
