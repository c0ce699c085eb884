"""A Celery consumer that comes back soon, and that no message ends."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from celery.worker import state
from celery.worker.consumer import Consumer

from broker.errors import Blame, blame_of
from minutebook.error_text import text_of
from runtime.clock import wait_for
from runtime.logs.events import EventLog

logger = EventLog("minutebook.worker")
celerys = logging.getLogger("celery.worker.consumer.consumer")

# With the two seconds that a try may take, tries begin at most five seconds apart.
LONGEST_PAUSE_S = 3


class RejectingConsumer(Consumer):
    """A Celery consumer that also rejects a message whose headers make Celery raise any error."""

    # Celery's, which its stubs do not know.
    connection_errors: tuple[type[Exception], ...]
    channel_errors: tuple[type[Exception], ...]

    def ensure_connected(self, conn: Any) -> Any:
        """Return the connection, open; kombu would pause for up to 30 seconds between tries."""
        conn.ensure_connection = partial(conn.ensure_connection, interval_max=LONGEST_PAUSE_S)
        return super().ensure_connected(conn)

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        """Give the connection up; Celery would read a key that is no queue anew without a pause."""
        is_queues = blame_of(exc) is not Blame.BROKER
        if is_queues:
            names = ", ".join(self.app.amqp.queues.consume_from)
            logger.error("queue_unreadable", "{queues} cannot be read: {error}", names, exc)
        celerys.disabled = is_queues
        try:
            super().on_connection_error_after_connected(exc)
        finally:
            celerys.disabled = False
        if is_queues:
            wait_for(lambda: state.should_stop is not None, LONGEST_PAUSE_S)

    def create_task_handler(self, *args: Any, **options: Any) -> Callable[[Any], Any]:
        """Return Celery's handler; a message that it cannot handle ends no worker."""
        handle = super().create_task_handler(*args, **options)

        def handle_any(message: Any) -> Any:
            try:
                return handle(message)
            except (*self.connection_errors, *self.channel_errors):
                raise
            except Exception as error:  # RabbitMQ would deliver the message again and again
                logger.error(
                    "message_rejected",
                    "a message in {queue} was rejected: {reason}",
                    (message.delivery_info or {}).get("routing_key"),
                    text_of(error),
                )
                if not message.acknowledged:
                    message.reject()

        return handle_any
