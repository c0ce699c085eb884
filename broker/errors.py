"""The errors of a broker's client, and what each says about a message."""

from amqp.exceptions import AccessRefused, AMQPError, MessageNacked
from kombu.exceptions import KombuError, OperationalError
from redis.exceptions import AskError, ClusterCrossSlotError, NoPermissionError, RedisError
from redis.exceptions import TimeoutError as NoAnswer

from minutebook.error_text import text_of
from models.errors import BrokerUnavailable

BROKER_ERRORS = (KombuError, OperationalError, RedisError, AMQPError, MessageNacked, OSError)
# Errors of a broker that would not answer another attempt either.
SILENT = (TimeoutError, NoAnswer)
# Our account lacks a right.
FORBIDDEN = (AccessRefused, NoPermissionError)
# Errors of a Redis Cluster: our queues would be on several nodes, but one command names them all.
OF_CLUSTERS = (AskError, ClusterCrossSlotError)
NO_CLUSTER = "Redis Cluster is not supported, use Redis without it"
# Valkey 9 answers so in a cluster; others do if the URL names a database that they do not have.
NO_DATABASE = "DB index is out of range"


def refuse_blocked(_reason: str) -> None:
    """Raise if RabbitMQ stopped reading messages, rather than wait for it to confirm one."""
    raise OperationalError("RabbitMQ takes no messages: it is low on memory or disk, see its log")


def unavailable(error: Exception) -> BrokerUnavailable:
    """Return the error to raise for one of BROKER_ERRORS."""
    if isinstance(error, MessageNacked):
        return BrokerUnavailable("RabbitMQ refuses a message: its queue is full")
    text = text_of(error)
    if NO_DATABASE in text:
        hint = f"use a lower number at the end of the URL; if this is a cluster: {NO_CLUSTER}"
        return BrokerUnavailable(f"{text} ({hint})")
    is_of_cluster = isinstance(error, OF_CLUSTERS) or "cluster mode" in text
    return BrokerUnavailable(f"{text} ({NO_CLUSTER})" if is_of_cluster else text)
