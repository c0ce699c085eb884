"""A broker that does not work is named, with what it does instead, and never by a class."""

import errno
import socket
import ssl

import pytest
from amqp.exceptions import AccessRefused, RecoverableConnectionError
from kombu.exceptions import OperationalError
from redis import exceptions as redis
from redis.sentinel import MasterNotFoundError

from broker.celery_rules import Application
from broker.errors import Blocked
from broker.outage import outage

REDIS = Application("redis://:secret@10.0.0.5:7650/0")


def chained(outer: Exception, inner: BaseException) -> Exception:
    """Return an error as a driver raises it: while it handles the system's."""
    outer.__context__ = inner
    return outer


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (
            chained(
                redis.ConnectionError("Error 111 connecting to 10.0.0.5:7650."),
                ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
            ),
            "refuses connections",
        ),
        (redis.TimeoutError("Timeout reading from socket"), "does not answer"),
        (redis.AuthenticationError("WRONGPASS"), "refuses the user or the password of its URL"),
        (redis.ReadOnlyError("READONLY"), "is a replica, and takes no messages"),
        (redis.OutOfMemoryError("OOM"), "is out of memory, and takes no messages"),
        (redis.BusyLoadingError("LOADING"), "is loading its data"),
        (redis.ResponseError("MISCONF …"), "cannot save its data, and takes no messages"),
        (redis.ResponseError("NOREPLICAS …"), "has too few replicas, and takes no messages"),
        (redis.ConnectionError("Connection closed by server."), "closes connections"),
        (MasterNotFoundError("No master"), "has no primary: no Sentinel names one"),
        (
            chained(OperationalError("no"), socket.gaierror(-2, "Name or service not known")),
            "cannot be found: its host name is unknown",
        ),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "cannot be reached from here"),
        (ssl.SSLError("wrong version number"), "does not speak TLS as its URL asks"),
        (Blocked(), "is low on memory or disk, and takes no messages: see its log"),
        (AccessRefused("no"), "refuses the user or the password of its URL"),
        (OperationalError("it is Tuesday.\nmore"), "does not work: it is Tuesday"),
        (EOFError(), "closes connections"),
        (ConnectionAbortedError(), "closes connections"),
        (OperationalError(), "does not work"),
        (RecoverableConnectionError(), "does not work"),
    ],
    ids=str,
)
def test_an_outage_is_told_in_words(error: Exception, what: str) -> None:
    assert outage(error, REDIS) == (
        f"Redis at 10.0.0.5:7650, the broker of your Celery application, {what}"
    )


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("amqp://user:secret@rabbit//", "RabbitMQ at rabbit:5672"),
        ("amqps://user:secret@rabbit//", "RabbitMQ at rabbit:5671"),
        ("redis://", "Redis at localhost:6379"),
        ("rediss://:secret@cache.example:6380/1", "Redis at cache.example:6380"),
        ("redis+socket:///run/valkey.sock", "the broker at /run/valkey.sock"),
        ("sentinel://a:26379;sentinel://b:26379", "Redis behind Sentinel"),
    ],
)
def test_a_broker_is_named_without_its_secrets(url: str, name: str) -> None:
    text = outage(redis.TimeoutError("Timeout"), Application(url))

    assert text.startswith(f"{name}, ")
