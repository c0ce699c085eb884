"""Reject the messages that Minutebook's workers cannot handle: none of them ends a worker.

A lost connection is logged calmly: no operation is lost.
"""

import logging
from collections.abc import Callable
from functools import partial
from queue import Empty
from typing import Any

from celery.worker.consumer import Consumer
from celery.worker.pidbox import Pidbox
from kombu.transport import redis

from broker.errors import BROKER_ERRORS
from minutebook.error_text import text_of
from runtime.logs.events import EventLog

logger = EventLog("minutebook.worker")

# What kombu raises for an item of Redis that is not a message.
NO_MESSAGE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)

# With the two seconds that a try may take, tries begin at most five seconds apart.
LONGEST_PAUSE_S = 3

# What Celery logs at a lost connection.
UNACKNOWLEDGED = "Couldn't ack"
ADVICE = "CPendingDeprecationWarning"


class RejectingConsumer(Consumer):
    """A Celery consumer that rejects what it cannot handle, and logs each such message once."""

    def ensure_connected(self, conn: Any) -> Any:
        """Return the connection, open; kombu would pause for up to 30 seconds between tries."""
        conn.ensure_connection = partial(conn.ensure_connection, interval_max=LONGEST_PAUSE_S)
        return super().ensure_connected(conn)

    def create_task_handler(self, *args: Any, **options: Any) -> Callable[[Any], Any]:
        """Return Celery's handler; a message that it cannot handle ends no worker."""
        handle = super().create_task_handler(*args, **options)

        def handle_any(message: Any) -> Any:
            try:
                return handle(message)
            except BROKER_ERRORS:
                raise
            except Exception as error:  # headers of any type make Celery raise errors of any type
                return _reject(message, f"it cannot be read: {text_of(error)}")

        return handle_any

    def on_unknown_task(self, _body: Any, message: Any, exc: Exception) -> None:
        _reject(message, f"the task {str(exc)[:100]} is not known here")

    def on_unknown_message(self, _body: Any, message: Any) -> None:
        _reject(message, "it is not a message of a Celery task")

    def on_decode_error(self, message: Any, exc: Exception) -> None:
        _reject(message, f"it cannot be decoded: {exc}")

    def on_invalid_task(self, _body: Any, message: Any, exc: Exception) -> None:
        _reject(message, f"it is refused: {exc}")


def _reject(message: Any, reason: str) -> None:
    _log((message.delivery_info or {}).get("routing_key"), reason)
    if not message.acknowledged:
        message.reject()


def _log(queue: object, reason: str) -> None:
    logger.error("message_rejected", "a message in {queue} was rejected: {reason}", queue, reason)


def survive_broken_items() -> None:
    """Let the workers of this process survive items of Redis that are not messages.

    kombu (5.7) raises the error of the parser in Celery's loop, which ends the worker:
    `test_no_broken_message_ends_a_worker`.
    """
    channel: Any = redis.Channel  # its stubs know none of what is patched
    if getattr(channel, "_survives", False):
        return
    channel._survives = True
    channel._brpop_read = _surviving(channel._brpop_read)
    channel._receive_one = _surviving(channel._receive_one)


def _surviving(read: Callable[..., Any]) -> Callable[..., Any]:
    def survive(*args: Any, **options: Any) -> Any:
        try:
            return read(*args, **options)
        except NO_MESSAGE as error:
            _log("Redis", f"it is not a message: {text_of(error)}")
            raise Empty from error

    return survive


def take_broadcasts_unread() -> None:
    """Let the workers of this process take broadcasts of remote control, and read none.

    An account that can write to the broker could stop every worker, or make each begin its remote
    control anew by a broken broadcast. It stays on, because a worker whose processes are all busy
    notices a lost connection by it alone.
    """
    remote_control: Any = Pidbox  # its stubs know no replacement
    remote_control.start = _start_unread


def _start_unread(self: Any, consumer: Any) -> None:
    self.node.channel = consumer.connection.channel()
    self.consumer = self.node.listen(callback=_unread)
    # Called before a message is decoded, and if it cannot be.
    self.consumer.on_message = self.consumer.on_decode_error = _unread


def _unread(*_: object) -> None:
    """Forget a broadcast: its queue needs no acknowledgement."""


def log_lost_connections_calmly() -> None:
    """Replace what Celery logs at each lost connection, in this process.

    Celery's text advises a setting that would cut off running operations. For each of them that
    ends later, Celery logs a critical error with a traceback.
    """
    logging.getLogger("py.warnings").addFilter(_is_no_advice)
    logging.getLogger("celery.worker.request").addFilter(_replace_unacknowledged)


def _is_no_advice(record: logging.LogRecord) -> bool:
    return ADVICE not in record.getMessage()


def _replace_unacknowledged(record: logging.LogRecord) -> bool:
    """Whether Celery's record is to be logged."""
    if not str(record.msg).startswith(UNACKNOWLEDGED):
        return True
    logger.info(
        "message_not_acknowledged",
        "a connection broke before its message was acknowledged: the broker repeats it",
    )
    return False
