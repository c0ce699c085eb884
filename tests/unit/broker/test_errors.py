"""Whose an error is that a broker's client raises: the broker's, a queue's or one message's."""

import struct
from typing import Any

import pytest
from amqp import exceptions as amqp
from kombu.exceptions import EncodeError, OperationalError
from redis._parsers import _RESP2Parser
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import TimeoutError as NoAnswer

from broker.errors import Blame, NoQueue, blame_of


def answered(text: str) -> Exception:
    """Return the error that the driver makes of an answer of Redis."""
    make: Any = _RESP2Parser
    made: Exception = make(4_096).parse_error(text)
    return made


@pytest.mark.parametrize(
    "text",
    [
        "READONLY You can't write against a read only replica.",
        "OOM command not allowed when used memory > 'maxmemory'.",
        "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to",
        "LOADING Redis is loading the dataset in memory",
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        "NOAUTH Authentication required.",
        "NOREPLICAS Not enough good replicas to write.",
        "BUSY Redis is busy running a script.",
        "ERR max number of clients reached",
    ],
)
def test_what_redis_answers_to_any_message_is_the_broker_s(text: str) -> None:
    assert blame_of(answered(text)) is Blame.BROKER


@pytest.mark.parametrize(
    ("error", "blame"),
    [
        pytest.param(LostConnection("gone"), Blame.BROKER, id="lost"),
        pytest.param(NoAnswer("silent"), Blame.BROKER, id="silent"),
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
        pytest.param(EncodeError("not JSON"), Blame.MESSAGE, id="not_json"),
        pytest.param(struct.error("too long"), Blame.MESSAGE, id="unwritable"),
    ],
)
def test_all_else_is_told_by_its_class(error: Exception, blame: Blame) -> None:
    assert blame_of(error) is blame


@pytest.mark.parametrize(
    ("text", "blame"),
    [
        ("WRONGTYPE Operation against a key holding the wrong kind of value", Blame.MESSAGE),
        ("NOPERM No permissions to access a key", Blame.PLACE),
        ("ERR something else", Blame.PLACE),
    ],
)
def test_what_redis_answers_to_one_message_is_not_the_broker_s(text: str, blame: Blame) -> None:
    assert blame_of(answered(text)) is blame
