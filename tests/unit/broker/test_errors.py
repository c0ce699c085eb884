"""Whose an error is that a broker's client raises, and in which words an outage is told."""

import errno
import socket
import ssl
import struct
from typing import Any

import pytest
from amqp import exceptions as amqp
from kombu.exceptions import EncodeError, OperationalError
from redis import exceptions as redis
from redis._parsers import _RESP2Parser
from redis.sentinel import MasterNotFoundError

from broker.celery_rules import Application
from broker.errors import Blame, Blocked, NoQueue, blame_of
from broker.outage import outage
from tests.tables import table

REDIS = Application("redis://:secret@10.0.0.5:7650/0")
REFUSED = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")


def answered(text: str) -> Exception:
    """Return the error that the driver makes of an answer of Redis."""
    make: Any = _RESP2Parser
    made: Exception = make(4_096).parse_error(text)
    return made


@pytest.mark.parametrize(
    "text",
    [
        *("READONLY You can't write", "OOM command not allowed", "MISCONF Redis is configured"),
        *("LOADING Redis is loading", "MASTERDOWN Link with MASTER", "NOAUTH Authentication"),
        *("NOREPLICAS Not enough", "BUSY Redis is busy", "ERR max number of clients reached"),
    ],
)
def test_what_redis_answers_to_any_message_is_the_broker_s(text: str) -> None:
    assert blame_of(answered(text)) is Blame.BROKER


@pytest.mark.parametrize(
    ("error", "blame"),
    [
        pytest.param(redis.ConnectionError("gone"), Blame.BROKER, id="lost"),
        pytest.param(redis.TimeoutError("silent"), Blame.BROKER, id="silent"),
        pytest.param(OSError("reset"), Blame.BROKER, id="reset"),
        pytest.param(OperationalError("blocked"), Blame.BROKER, id="blocked"),
        pytest.param(amqp.ConnectionForced("shutdown"), Blame.BROKER, id="shutdown"),
        pytest.param(amqp.FrameSyntaxError("bad"), Blame.BROKER, id="hung_up"),
        pytest.param(amqp.MessageNacked(), Blame.PLACE, id="full"),
        pytest.param(amqp.NotFound("no exchange"), Blame.PLACE, id="missing"),
        pytest.param(amqp.AccessRefused("no"), Blame.PLACE, id="forbidden"),
        pytest.param(amqp.PreconditionFailed("inequivalent arg"), Blame.PLACE, id="other"),
        pytest.param(NoQueue("none"), Blame.PLACE, id="unbound"),
        pytest.param(
            amqp.PreconditionFailed("message size 9 is larger than configured max size 8"),
            Blame.MESSAGE,
            id="too_large",
        ),
        pytest.param(answered("WRONGTYPE Operation against"), Blame.MESSAGE, id="wrong_kind"),
        pytest.param(answered("NOPERM No permissions to access a key"), Blame.PLACE, id="no_key"),
        pytest.param(answered("ERR something else"), Blame.PLACE, id="other_of_redis"),
        pytest.param(EncodeError("not JSON"), Blame.MESSAGE, id="not_json"),
        pytest.param(struct.error("too long"), Blame.MESSAGE, id="unwritable"),
    ],
)
def test_all_else_is_told_by_its_class(error: Exception, blame: Blame) -> None:
    assert blame_of(error) is blame


def chained(outer: Exception, inner: BaseException) -> Exception:
    """Return an error as a driver raises it: while it handles the system's."""
    outer.__context__ = inner
    return outer


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (chained(redis.ConnectionError("Error 111"), REFUSED), "refuses connections"),
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
        (amqp.AccessRefused("no"), "refuses the user or the password of its URL"),
        (OperationalError("it is Tuesday.\nmore"), "does not work: it is Tuesday"),
        (EOFError(), "closes connections"),
        (OperationalError(), "does not work"),
        (amqp.RecoverableConnectionError(), "does not work"),
    ],
    ids=str,
)
def test_an_outage_is_told_in_words(error: Exception, what: str) -> None:
    assert outage(error, REDIS) == (
        f"Redis at 10.0.0.5:7650, the broker of your Celery application, {what}"
    )


@pytest.mark.parametrize(("url", "name"), table(__file__, "a_broker_is_named_without_its_secrets"))
def test_a_broker_is_named_without_its_secrets(url: str, name: str) -> None:
    text = outage(redis.TimeoutError("Timeout"), Application(url))

    assert text.startswith(f"{name}, ")
