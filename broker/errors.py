"""The errors of a broker's client, and what each says about a message."""

from amqp.exceptions import AccessRefused, AMQPError, MessageNacked
from kombu.exceptions import KombuError, OperationalError
from redis.exceptions import NoPermissionError, RedisError
from redis.exceptions import TimeoutError as NoAnswer

from models.errors import BrokerUnavailable

BROKER_ERRORS = (KombuError, OperationalError, RedisError, AMQPError, MessageNacked, OSError)
# Those of a broker that would be silent again.
SILENT = (TimeoutError, NoAnswer)
# Our account lacks a right.
FORBIDDEN = (AccessRefused, NoPermissionError)


def unavailable(error: Exception) -> BrokerUnavailable:
    """Return the error to raise for one of BROKER_ERRORS."""
    if isinstance(error, MessageNacked):
        return BrokerUnavailable("RabbitMQ refuses a message: its queue is full")
    return BrokerUnavailable(f"{type(error).__name__}: {error}")
