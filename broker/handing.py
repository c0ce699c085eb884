"""Send tasks of the user's own: each by itself, and told apart what became of each."""

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from socket import gaierror
from typing import Any

import sqlalchemy as sa
from kombu import Connection, Producer, Queue
from redis.exceptions import ResponseError

from broker.app import (
    BROKER_ERRORS,
    ORIGIN,
    app,
    celery_transport_options,
    connect,
    settings_in_use,
)
from broker.celery_rules import celery_broker_url, rules_of
from minutehand.followed import HEADER
from models.store.operations import handing
from models.store.operations.handing import Handed
from models.store.operations.outbox import Message
from runtime.clock import monotonic
from runtime.config import Settings

logger = logging.getLogger("minutehand.broker")

# So many are on their way at a time: when their sender is killed, no more are in doubt.
AT_A_TIME = 50
CONNECT_S = 2
# A broker of its own that is away must not hold up what is sent to ours, again and again.
LEFT_ALONE_S = 5.0
# What is raised before a connection stands, and what a server answers that took nothing.
NOTHING_TAKEN = (ConnectionRefusedError, FileNotFoundError, gaierror, ResponseError)


@dataclass
class Outcome:
    """What the broker took, what it did not take, both for certain; the rest is in doubt."""

    accepted: list[Handed] = field(default_factory=list)
    refused: list[Handed] = field(default_factory=list)
    error: str | None = None


def hand_over(engine: sa.Engine, messages: Sequence[Message]) -> tuple[int, str | None]:
    """Send operations that the caller has reserved to the user's own application.

    Returns how many the broker took and why it took no more; never raises for a broker that is
    down. What is uncertain is left to `in_doubt`.
    """
    settings = settings_in_use()
    rules, url, count = rules_of(settings), celery_broker_url(settings), 0
    failed_at = _failed_at.get(url)
    if not shares_broker(settings) and failed_at and monotonic() - failed_at < LEFT_ALONE_S:
        # Their reservation runs out: a later tick sends them.
        return 0, "the broker of the Celery application was unavailable a moment ago"
    for chunk in _chunks(messages):
        with engine.begin() as connection:
            handed = handing.begin(connection, chunk, rules, settings.alert)
        outcome = send_each(url, handed)
        with engine.begin() as connection:
            handing.settle(connection, outcome.accepted, outcome.refused, settings.alert)
        count += len(outcome.accepted)
        if outcome.error is not None:
            _tell(outcome, len(handed))
            _failed_at[url] = monotonic()
            return count, outcome.error
    return count, None


def _chunks(messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
    for start in range(0, len(messages), AT_A_TIME):
        yield messages[start : start + AT_A_TIME]


def _tell(outcome: Outcome, begun: int) -> None:
    doubtful = begun - len(outcome.accepted) - len(outcome.refused)
    logger.warning(
        "broker of the Celery application unavailable, %d tasks wait, %d are in doubt: %s",
        len(outcome.refused),
        doubtful,
        outcome.error,
    )


def send_each(url: str, handed: Sequence[Handed]) -> Outcome:
    """Send tasks one by one, until the broker fails; say of each what became of it."""
    outcome = Outcome()
    if not handed:
        return outcome
    try:
        missing = _link(url).missing_queues({one.queue for one in handed})
    except BROKER_ERRORS as error:
        _unlink()
        return Outcome(refused=list(handed), error=_text(error))
    for number, one in enumerate(handed):
        if one.queue in missing:
            logger.warning("the broker has no queue %s; start a worker that listens", one.queue)
            outcome.refused.append(one)
            continue
        try:
            _link(url).send(one)
        except BROKER_ERRORS as error:
            _unlink()
            left = number if _took_nothing(error) else number + 1
            outcome.refused += handed[left:]
            outcome.error = _text(error)
            return outcome
        outcome.accepted.append(one)
    return outcome


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _took_nothing(error: BaseException | None) -> bool:
    """Whether the broker did not take the message for certain."""
    while error is not None:
        if isinstance(error, NOTHING_TAKEN):
            return True
        error = error.__cause__ or error.__context__
    return False


class _Link:
    """A connection to the broker of the user's application; never tries anything twice."""

    def __init__(self, url: str) -> None:
        options = celery_transport_options(settings_in_use())
        self.connection = Connection(url, connect_timeout=CONNECT_S, transport_options=options)
        connect(self.connection)
        self.producer: Any = Producer(self.connection.default_channel, auto_declare=False)
        self.is_amqp = "amqp" in url.partition("://")[0]

    def missing_queues(self, queues: set[str]) -> set[str]:
        """Return the queues that an AMQP broker does not have: it would drop their messages.

        They are declared by those who listen, in their own way. Redis makes any; asking it shows
        that the connection lives, before anything is written.
        """
        if not self.is_amqp:
            self.producer.channel.client.ping()
            return set()
        return {name for name in queues if not self._has(name)}

    def _has(self, name: str) -> bool:
        # A channel of its own: asking for a queue that is not there ends it.
        with self.connection.channel() as channel:
            try:
                Queue(name, channel=channel).queue_declare(passive=True)
            except self.connection.channel_errors:
                return False
        return True

    def send(self, one: Handed) -> None:
        """Send a task by itself, as Celery's message protocol 2 has it."""
        text, task = str(one.id), one.hand_over
        made = app.amqp.as_task_v2(text, task.task, task.args, task.kwargs, origin=ORIGIN)
        self.producer.publish(
            made.body,
            exchange="",
            routing_key=one.queue,
            serializer="json",
            headers={**made.headers, HEADER: one.header},
            **made.properties,
        )


_links: dict[str, Any] = {}
_failed_at: dict[str, float] = {}


def _link(url: str) -> _Link:
    """Return this process's link; a new one after an error or a fork."""
    key = (os.getpid(), url, settings_in_use().celery.global_keyprefix)
    if _links.get("key") != key:
        _unlink()
        _links.update(key=key, link=_Link(url))
    link: _Link = _links["link"]
    return link


def _unlink() -> None:
    old, key = _links.pop("link", None), _links.pop("key", None)
    # A connection that came from a fork belongs to the parent.
    if old is not None and key[0] == os.getpid():
        with suppress(*BROKER_ERRORS):
            old.connection.close()


def shares_broker(settings: Settings) -> bool:
    """Whether the user's application has the same broker as Minutehand."""
    return celery_broker_url(settings) == settings.effective_broker_url
