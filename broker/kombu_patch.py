"""A patch of kombu's Redis transport that lets workers survive a lost connection."""

from typing import Any

from kombu.transport.redis import Channel
from redis.exceptions import ConnectionError as LostConnection

_connection_parameters = Channel._connparams  # type: ignore[attr-defined]


def outlive_lost_connections() -> None:
    """Let a worker survive a broker that goes away while a step runs.

    To reject or acknowledge its message, kombu (5.7) asks a closed connection for its host. The
    AttributeError would end the worker; Celery survives the driver's own error. The broker keeps
    the message as unacknowledged.
    """
    Channel._connparams = _parameters_of_an_open_one  # type: ignore[attr-defined]


def _parameters_of_an_open_one(channel: Channel, asynchronous: bool = False) -> dict[str, Any]:
    if channel.connection is None or channel.connection.client is None:
        raise LostConnection("the connection to the broker is closed")
    parameters: dict[str, Any] = _connection_parameters(channel, asynchronous=asynchronous)
    return parameters
