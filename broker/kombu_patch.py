"""Patches of kombu's Redis transport, so that workers survive what a broker does to them."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from queue import Empty
from typing import Any
from uuid import uuid4

from kombu.transport import redis
from redis.exceptions import ConnectionError as LostConnection

from models.carriers import OURS

transport: Any = redis  # its stubs know none of what is patched
_connection_parameters = transport.Channel._connparams
_deliver = transport.Transport._deliver
_loads = transport.loads
_restore_unacked = transport.virtual.QoS.restore_unacked


def survive_the_broker() -> None:
    """Let the workers of this process survive lost connections and broken items.

    To put back a message of a lost connection, kombu (5.7) asks a closed one for its host. The
    AttributeError would end the worker; Celery survives the driver's own error. The operation is
    sent again.

    An item that is not a JSON message would end the worker too, again after each restart. It
    arrives as a message of the content type `application/data`, which the consumer sets aside.

    What cannot be put back, kombu would call lost, and write to a new file each time.
    """
    transport.Channel._connparams = _parameters_of_an_open_one
    transport.bytes_to_str = _text_of
    transport.loads = _loaded
    transport.Transport._deliver = _deliver_any
    transport.virtual.QoS.restore_unacked = _put_back


def _parameters_of_an_open_one(channel: Any, asynchronous: bool = False) -> dict[str, Any]:
    if channel.connection is None or channel.connection.client is None:
        raise LostConnection("the connection to the broker is closed")
    parameters: dict[str, Any] = _connection_parameters(channel, asynchronous=asynchronous)
    return parameters


def _put_back(taken: Any) -> list[Any]:
    """Put back what was taken; return nothing as lost: the tables send it again."""
    _restore_unacked(taken)
    return []


def _text_of(item: Any) -> Any:
    return item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else item


def _loaded(text: Any, *args: Any, **options: Any) -> Any:
    """Return the JSON value of a text, or the text itself."""
    try:
        return _loads(text, *args, **options)
    except (ValueError, TypeError, RecursionError):
        return text


def _deliver_any(self: Any, message: Any, queue: str) -> None:
    if _is_message(message):
        _deliver(self, message, queue)
    elif queue and queue.startswith(OURS.prefix):
        _deliver(self, _wrapped(message, queue), queue)
    else:
        # A broadcast of remote control, which our workers do not need.
        raise Empty


def _is_message(item: Any) -> bool:
    """Whether kombu can make a message of the item."""
    if not isinstance(item, dict):
        return False
    properties, headers = item.get("properties"), item.get("headers")
    if not isinstance(properties, dict) or not isinstance(headers, dict | None):
        return False
    info, encoding = properties.get("delivery_info"), properties.get("body_encoding")
    return (
        isinstance(properties.get("delivery_tag"), str)
        and isinstance(info, dict)
        and all(isinstance(info.get(key), str) for key in ("exchange", "routing_key"))
        and all(
            isinstance(item.get(key), str | None) for key in ("content-type", "content-encoding")
        )
        and _has_body(item.get("body"), encoding)
    )


def _has_body(body: Any, encoding: Any) -> bool:
    if not isinstance(body, str) or encoding not in (None, "base64"):
        return False
    try:
        b64decode(body if encoding else "")
    except ValueError:
        return False
    return True


def _wrapped(item: Any, queue: str) -> Mapping[str, Any]:
    """Return a message that carries the item as bytes."""
    text = item if isinstance(item, str) else transport.dumps(item)
    body = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return {
        "body": b64encode(body).decode(),
        "content-type": "application/data",
        "content-encoding": "binary",
        "headers": {},
        "properties": {
            "body_encoding": "base64",
            "delivery_tag": str(uuid4()),
            "delivery_info": {"exchange": "", "routing_key": queue},
        },
    }
