"""Send tasks to the user's Celery application one by one, recording the outcome of each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from socket import gaierror

import sqlalchemy as sa
from amqp.exceptions import MessageNacked
from redis.exceptions import AuthenticationError, BusyLoadingError, ResponseError

from broker.celery_rules import Application, has_one_broker, rules_of
from broker.errors import (
    BROKER_ERRORS,
    SENDING_ERRORS,
    Blame,
    NoQueue,
    blame_of,
    why_not_taken,
)
from broker.external_link import kept, link_to
from broker.in_use import settings_in_use
from broker.outage import outage
from broker.sending import Sent
from models.sql import parts_of
from models.store import celery_queues
from models.store.operations import external_send
from models.store.operations.external_send import Handed
from models.store.operations.reserve import Message
from runtime.clock import monotonic
from runtime.config import Settings
from runtime.database import is_locked, reason_of, wait_briefly
from runtime.logs.events import EventLog

logger = EventLog("minutebook.broker")

# The most tasks on their way at a time, and so in doubt if the sender is killed.
AT_A_TIME = 50
# Errors before a connection is open, and answers of a server that took nothing.
NOTHING_TAKEN = (
    ConnectionRefusedError, FileNotFoundError, gaierror,
    ResponseError, AuthenticationError, BusyLoadingError,
)  # fmt: skip
# For how long a broker that failed is left alone. One that accepts connections and then says
# nothing takes ten seconds each time, and all that the tick sends after it waits.
LEFT_ALONE_S = 10.0
# By the broker's URL, until when, and how it failed.
_left_alone: dict[str, tuple[float, str]] = {}


@dataclass
class Answers:
    """Messages that the broker certainly took or certainly did not take; the rest is in doubt.

    `unsendable` are the errors of those that no broker will ever take.
    """

    accepted: list[Handed] = field(default_factory=list)
    refused: list[Handed] = field(default_factory=list)
    unsendable: list[tuple[Handed, str]] = field(default_factory=list)
    error: str | None = None
    # Queues that took nothing: what else was to go there is refused unasked.
    closed: set[str] = field(default_factory=set)

    def refuse(self, one: Handed, error: Exception) -> None:
        """Note an error that is this message's, or its queue's."""
        why = why_not_taken(error)
        if blame_of(error) is Blame.MESSAGE:
            self.unsendable.append((one, why))
            return
        self.closed.add(one.queue)
        if isinstance(error, MessageNacked) and one.hand_over.exchange is not None:
            # RabbitMQ gave it to the other queues of the exchange: it stays in doubt.
            return
        self.refused.append(one)
        logger.warning("queue_refuses", "nothing was sent to {queue}: {error}", one.queue, why)

    def apart(self) -> Iterator["Answers"]:
        """Yield an outcome for each message."""
        yield from (Answers(accepted=[one]) for one in self.accepted)
        yield from (Answers(refused=[one]) for one in self.refused)
        yield from (Answers(unsendable=[one]) for one in self.unsendable)


def hand_over(engine: sa.Engine, messages: Sequence[Message], application: Application) -> Sent:
    """Send operations that the caller has reserved to the Celery application.

    Never raises if the broker is down.
    """
    settings, count = settings_in_use(), 0
    if (error := why_left_alone(application)) is not None:
        # A later tick sends them, once their reservation has expired.
        return Sent(0, error)
    for chunk in parts_of(messages, AT_A_TIME):
        with engine.begin() as connection:
            handed = external_send.begin(connection, chunk, rules_of(settings), settings.alert)
        outcome = send_each(handed, application) if handed else Answers()
        _settle(engine, outcome, settings)
        count += len(outcome.accepted)
        if outcome.error is not None:
            _log(outcome, len(handed))
            _left_alone[application.url] = (monotonic() + LEFT_ALONE_S, outcome.error)
            return Sent(count, outcome.error)
    return Sent(count)


def why_left_alone(application: Application) -> str | None:
    """Return how the application's own broker failed a moment ago, None if it did not."""
    until, error = _left_alone.get(application.url, (0.0, ""))
    is_apart = not has_one_broker(settings_in_use())
    return error if is_apart and monotonic() < until else None


def _settle(engine: sa.Engine, outcome: Answers, settings: Settings) -> None:
    """Record what became of messages; rows that others keep locked hold up their own message only.

    Whatever is not recorded is in doubt: the sweep decides it.
    """
    try:
        _settle_together(engine, outcome, settings)
    except sa.exc.OperationalError as error:
        if not is_locked(error):
            raise
        for one in outcome.apart():
            _settle_alone(engine, one, settings)


def _settle_together(engine: sa.Engine, outcome: Answers, settings: Settings) -> None:
    with engine.begin() as connection:
        wait_briefly(connection)
        external_send.settle(connection, outcome.accepted, outcome.refused, settings.alert)
        external_send.fail_unsendable(connection, outcome.unsendable, settings.alert)
        if outcome.accepted:
            by_queue = (one.queue for one in outcome.accepted if one.hand_over.exchange is None)
            celery_queues.note(connection, by_queue)


def _settle_alone(engine: sa.Engine, one: Answers, settings: Settings) -> None:
    try:
        _settle_together(engine, one, settings)
    except sa.exc.OperationalError as error:
        if not is_locked(error):
            raise
        why = reason_of(error)
        logger.warning(
            "sending_not_recorded",
            "what became of a task is not recorded, its rows stay locked: {error}",
            why,
        )


def _log(outcome: Answers, begun: int) -> None:
    logger.warning(
        "application_broker_unavailable",
        "broker of the Celery application unavailable, {waiting} tasks wait, "
        "{in_doubt} are in doubt: {error}",
        len(outcome.refused),
        begun - len(outcome.accepted) - len(outcome.refused) - len(outcome.unsendable),
        outcome.error,
    )


def send_each(handed: Sequence[Handed], application: Application) -> Answers:
    """Send tasks one by one until the broker fails; return the outcome of each."""
    outcome = Answers()
    try:
        kept.ask(lambda: link_to(application).ping())
    except BROKER_ERRORS as error:
        return Answers(refused=list(handed), error=outage(error, application))
    for number, one in enumerate(handed):
        if one.queue in outcome.closed:
            outcome.refused.append(one)
            continue
        try:
            _send(one, application)
            outcome.accepted.append(one)
        except SENDING_ERRORS as error:
            if blame_of(error) is Blame.BROKER:
                left = number if _took_nothing(error) else number + 1
                outcome.refused += handed[left:]
                outcome.error = outage(error, application)
                break
            outcome.refuse(one, error)
    return outcome


def _send(one: Handed, application: Application) -> None:
    """Send a task; raises one of SENDING_ERRORS if the broker did not take it."""
    try:
        link_to(application).send(one)
    except SENDING_ERRORS as error:
        # After others, RabbitMQ has closed the channel.
        if not isinstance(error, NoQueue | MessageNacked):
            kept.drop()
        raise


def _took_nothing(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, NOTHING_TAKEN):
            return True
        error = error.__cause__ or error.__context__
    return False
