"""Set aside the messages that Minutebook's workers do not know."""

from collections.abc import Callable
from typing import Any

from celery.worker.consumer import Consumer
from celery.worker.pidbox import Pidbox

from broker.app import keep
from broker.errors import BROKER_ERRORS
from broker.exact import why_foreign
from broker.names import UNKNOWN_QUEUE
from minutebook.error_text import text_of
from models.errors import BrokerUnavailable
from runtime.logs.events import EventLog

logger = EventLog("minutebook.worker")


class KeepingConsumer(Consumer):
    """A Celery consumer that takes exactly what Minutebook sends, and sets all else aside.

    What is set aside stays unchanged: another application may have sent it to one of our queues.
    """

    def create_task_handler(self, *args: Any, **options: Any) -> Callable[[Any], Any]:
        """Return Celery's handler; a message that it cannot handle ends no worker."""
        handle = super().create_task_handler(*args, **options)

        def handle_any(message: Any) -> Any:
            foreign = why_foreign(message)
            if foreign is not None:
                return _put_aside(message, foreign)
            try:
                return handle(message)
            except BROKER_ERRORS:
                raise
            except Exception as error:  # headers of any type make Celery raise errors of any type
                return _put_aside(message, f"it cannot be read: {text_of(error)}")

        return handle_any

    def on_unknown_task(self, _body: Any, message: Any, exc: Exception) -> None:
        _put_aside(message, f"the task {exc} is not known here")

    def on_unknown_message(self, _body: Any, message: Any) -> None:
        _put_aside(message, "it is not a message of a Celery task")

    def on_decode_error(self, message: Any, exc: Exception) -> None:
        _put_aside(message, f"it cannot be decoded: {exc}")

    def on_invalid_task(self, _body: Any, message: Any, exc: Exception) -> None:
        _put_aside(message, f"it is refused: {exc}")


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


def _put_aside(message: Any, reason: str) -> None:
    queue = (message.delivery_info or {}).get("routing_key")
    try:
        keep(message)
    except BrokerUnavailable as error:
        logger.error(
            "message_stays",
            "a message in {queue} ({reason}) cannot be moved away: {error}",
            queue,
            reason,
            error,
        )
        message.requeue()
        return
    message.ack()
    logger.error(
        "message_put_aside",
        "a message in {queue} was moved to {aside}: {reason}",
        queue,
        UNKNOWN_QUEUE,
        reason,
    )
