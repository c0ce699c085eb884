"""Count the messages that wait in our queues."""

from collections.abc import Collection, Mapping
from contextlib import nullcontext
from typing import Any

from kombu import Connection, Queue

from broker.app import AMQP, declare_anew, kept, kept_producer
from broker.errors import BROKER_ERRORS, FORBIDDEN, Blame, blame_of, unavailable
from models.carriers import OURS


def depths(queues: Collection[str]) -> Mapping[str, int]:
    """Return how many messages wait in each of our queues; raises BrokerUnavailable.

    A missing queue has none, and is declared anew by the next message. What our account may not
    ask is left out. Reopens a connection that broke since the last look.
    """
    try:
        return kept.ask(lambda: _depths(queues))
    except BROKER_ERRORS as error:
        raise unavailable(error) from error


def _depths(queues: Collection[str]) -> Mapping[str, int]:
    connection = kept_producer().connection
    found: dict[str, int] = {}
    for queue in queues:
        try:
            count = depth(connection, OURS.listed(queue))
        except FORBIDDEN:
            continue
        if count is None:
            declare_anew(OURS.listed(queue))
        found[queue] = count or 0
    return found


def depth(connection: Connection, name: str) -> int | None:
    """Return how many messages a queue holds, None if it is none; raises BROKER_ERRORS.

    Lists of priorities count; what a worker has taken counts where the broker tells.
    """
    # Asking RabbitMQ for a missing queue closes the channel.
    is_amqp = connection.transport_cls in AMQP
    with connection.channel() if is_amqp else nullcontext(connection.default_channel) as channel:
        try:
            declared: Any = Queue(name, channel=channel).queue_declare(passive=True)
            return int(declared.message_count)
        except BROKER_ERRORS as error:
            if isinstance(error, FORBIDDEN) or blame_of(error) is Blame.BROKER:
                raise
            return None
