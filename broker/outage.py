"""What is wrong with a broker, in words: which one it is, and what it does instead of its work."""

import errno
import socket
import ssl
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from amqp.exceptions import AccessRefused
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    MasterDownError,
    OutOfMemoryError,
    ReadOnlyError,
)
from redis.sentinel import MasterNotFoundError

from broker.celery_rules import Application, is_amqp
from broker.errors import SILENT, Blocked
from broker.in_use import settings_in_use
from models.errors import BrokerUnavailable

OF_APPLICATION = ", the broker of your Celery application,"
_PORTS = {"amqp": 5672, "pyamqp": 5672, "amqps": 5671}
_OF_REDIS = 6379
_REFUSED = "refuses the user or the password of its URL"
_BY_CLASS: Mapping[type[BaseException], str] = {
    AuthenticationError: _REFUSED,
    AccessRefused: _REFUSED,
    ReadOnlyError: "is a replica, and takes no messages",
    MasterDownError: "is a replica without its primary",
    MasterNotFoundError: "has no primary: no Sentinel names one",
    Blocked: "is low on memory or disk, and takes no messages: see its log",
    OutOfMemoryError: "is out of memory, and takes no messages",
    BusyLoadingError: "is loading its data",
    socket.gaierror: "cannot be found: its host name is unknown",
    ssl.SSLError: "does not speak TLS as its URL asks",
    ConnectionResetError: "closes connections",
    ConnectionAbortedError: "closes connections",
    BrokenPipeError: "closes connections",
    EOFError: "closes connections",
}
_BY_NUMBER: Mapping[int | None, str] = {
    errno.ECONNREFUSED: "refuses connections",
    errno.ENOENT: "does not run: its socket is missing",
    errno.ETIMEDOUT: "does not answer",
    errno.EHOSTUNREACH: "cannot be reached from here",
    errno.ENETUNREACH: "cannot be reached from here",
}
# The first words of Redis' other answers to any message.
_BY_WORD: Mapping[str, str] = {
    "MISCONF": "cannot save its data, and takes no messages",
    "NOREPLICAS": "has too few replicas, and takes no messages",
    "Connection closed by server": "closes connections",
}


def unavailable(error: Exception, application: Application | None = None) -> BrokerUnavailable:
    """Return the error to raise for one of BROKER_ERRORS, of our own broker by default."""
    return BrokerUnavailable(outage(error, application))


def outage(error: Exception, application: Application | None = None) -> str:
    """Return which broker does not work, and how, in a clause."""
    ours = settings_in_use().effective_broker_url
    url = ours if application is None else application.url
    return f"{_named(url)}{'' if url == ours else OF_APPLICATION} {_what_of(error)}"


def _named(url: str) -> str:
    """Return a broker's name and address, without secrets."""
    parts = urlsplit(url.partition(";")[0])
    what = "RabbitMQ" if is_amqp(url) else "Redis"
    if "sentinel" in parts.scheme:
        return f"{what} behind Sentinel"
    if "socket" in parts.scheme:
        return f"the broker at {parts.path}"
    port = parts.port or _PORTS.get(parts.scheme, _OF_REDIS)
    return f"{what} at {parts.hostname or 'localhost'}:{port}"


def _what_of(error: BaseException) -> str:
    for one in _chain(error):
        for kind, text in _BY_CLASS.items():
            if isinstance(one, kind):
                return text
        number = one.errno if isinstance(one, OSError) else None
        if text := _BY_NUMBER.get(number, ""):
            return text
        for words, text in _BY_WORD.items():
            if str(one).startswith(words):
                return text
    if any(isinstance(one, SILENT) for one in _chain(error)):
        return "does not answer"
    line = str(error).strip().partition("\n")[0].rstrip(".")
    # Without a text, AMQP's errors show their class.
    return "does not work" if not line or line.startswith("<") else f"does not work: {line}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, and those that led to it."""
    at: BaseException | None = error
    while at is not None:
        yield at
        at = at.__cause__ or at.__context__
