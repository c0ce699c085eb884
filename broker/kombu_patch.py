"""A correction of kombu's Redis transport that workers need: a lost connection is a known error."""

from typing import Any

from kombu.transport.redis import Channel
from redis.exceptions import ConnectionError as LostConnection

_connection_parameters = Channel._connparams  # type: ignore[attr-defined]


def outlive_lost_connections() -> None:
    """Let a worker outlive a broker that goes away while a step runs.

    To give back or acknowledge its message, kombu (5.7) asks a connection that is closed already
    for its host: an AttributeError, which ended the worker and the step with it. Celery expects,
    and survives, the driver's own error. The broker keeps the message as unacknowledged.
    """
    Channel._connparams = _parameters_of_an_open_one  # type: ignore[attr-defined]


def _parameters_of_an_open_one(channel: Channel, asynchronous: bool = False) -> dict[str, Any]:
    if channel.connection is None or channel.connection.client is None:
        raise LostConnection("the connection to the broker is closed")
    parameters: dict[str, Any] = _connection_parameters(channel, asynchronous=asynchronous)
    return parameters
