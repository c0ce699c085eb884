"""The errors of a broker's client: whose each of them is, the broker's or one message's."""

import struct
from enum import Enum

from amqp.exceptions import AccessRefused, AMQPError, ChannelError, ContentTooLarge, MessageNacked
from kombu.exceptions import EncodeError, KombuError, OperationalError
from redis.exceptions import (
    DataError,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.exceptions import TimeoutError as NoAnswer

from minutebook.error_text import text_of

BROKER_ERRORS = (KombuError, OperationalError, RedisError, AMQPError, MessageNacked, OSError)
# Errors of a broker that would not answer another attempt either.
SILENT = (TimeoutError, NoAnswer)
# What drivers raise before they send anything.
UNWRITABLE = (
    EncodeError, DataError, struct.error, ArithmeticError, RecursionError, TypeError, ValueError
)  # fmt: skip
# Our account lacks a right.
FORBIDDEN = (AccessRefused, NoPermissionError)

# Answers of Redis to any message. Its driver has no classes for some: the first words of these.
_OF_ANY_MESSAGE = (OutOfMemoryError, ReadOnlyError, MasterDownError)
_WORDS_OF_ANY_MESSAGE = ("MISCONF ", "NOREPLICAS ", "BUSY ")
# RabbitMQ answers so to a message over its max_message_size.
_TOO_LARGE = "larger than configured max size"


class NoQueue(Exception):
    """The broker has no queue for a message."""


SENDING_ERRORS = (*BROKER_ERRORS, *UNWRITABLE, NoQueue)


class Blame(Enum):
    """Whose an error is that came in place of the broker's word that it took a message."""

    # Each message would meet it: nothing more is sent to that broker now.
    BROKER = "the broker"
    # Its queue or exchange is missing, full or forbidden: it may be taken later.
    PLACE = "the place of this message"
    # This message will never be taken.
    MESSAGE = "this message"


def blame_of(error: Exception) -> Blame:
    """Return whose one of SENDING_ERRORS is."""
    if isinstance(error, (*UNWRITABLE, ContentTooLarge)) or _TOO_LARGE in str(error):
        return Blame.MESSAGE
    if isinstance(error, NoQueue | MessageNacked | ChannelError | NoPermissionError):
        return Blame.PLACE
    is_answer = isinstance(error, ResponseError) and not isinstance(error, _OF_ANY_MESSAGE)
    if is_answer and not str(error).startswith(_WORDS_OF_ANY_MESSAGE):
        return Blame.MESSAGE if "WRONGTYPE " in str(error) else Blame.PLACE
    return Blame.BROKER


def why_not_taken(error: Exception) -> str:
    """Return an error that is not the broker's in words."""
    return "its queue is full" if isinstance(error, MessageNacked) else text_of(error)


class Blocked(OperationalError):
    """RabbitMQ stopped reading messages: it is low on memory or disk."""


def refuse_blocked(_reason: str) -> None:
    """Raise if RabbitMQ stopped reading messages, rather than wait for it to confirm one."""
    raise Blocked
