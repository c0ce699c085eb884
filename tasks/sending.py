"""Send reserved operations: publish outside any transaction, then mark what the broker took."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa

from models.errors import BrokerUnavailable
from models.store import backfills, notices, outbox
from models.store.backfills import Turn
from models.store.notices import Owed
from models.store.outbox import Message
from runtime.database import unhurried
from tasks.app import publish
from tasks.names import DEFAULT, DELIVER_NOTICE, METATASK_SCHEDULE, QUICK

logger = logging.getLogger("minutehand.broker")


@dataclass(frozen=True, slots=True)
class Sent:
    """How many messages the broker took, and why it took no more."""

    count: int
    error: str | None = None


def send_reserved(engine: sa.Engine, messages: Sequence[Message]) -> Sent:
    """Send operations that the caller has reserved; never raises for a broker that is down.

    What was not sent for certain is released, so that the next tick sends it.
    """
    count = 0
    try:
        for taken in publish(messages):
            with unhurried(engine) as connection:
                outbox.mark_sent(connection, taken)
            count += len(taken)
    except BrokerUnavailable as error:
        logger.warning("broker unavailable, %d operations wait: %s", len(messages) - count, error)
        with unhurried(engine) as connection:
            outbox.release_unsent(connection, messages[count:])
        return Sent(count, str(error))
    return Sent(count)


def send_backfills(engine: sa.Engine, turns: Sequence[Turn]) -> Sent:
    """Ask workers to work off backfills that the caller has reserved; like `send_reserved`."""
    messages = [Message(id, attempt, METATASK_SCHEDULE, DEFAULT) for id, attempt in turns]
    count, error = 0, None
    try:
        for taken in publish(messages):
            count += len(taken)
    except BrokerUnavailable as unavailable:
        logger.warning("broker unavailable, %d backfills wait", len(turns) - count)
        error = str(unavailable)
    with unhurried(engine) as connection:
        backfills.put_off(connection, turns[:count], backfills.RESENT_AFTER)
        backfills.put_off(connection, turns[count:], timedelta(0))
    return Sent(count, error)


def send_notices(engine: sa.Engine, owed: Sequence[Owed]) -> Sent:
    """Send notices that the caller has reserved to those who deliver them; as `send_reserved`."""
    messages = [Message(one.id, one.tries + 1, DELIVER_NOTICE, QUICK) for one in owed]
    count = 0
    try:
        for taken in publish(messages):
            with unhurried(engine) as connection:
                notices.mark_sent(connection, owed[count : count + len(taken)])
            count += len(taken)
    except BrokerUnavailable as error:
        logger.warning("broker unavailable, %d notices wait: %s", len(owed) - count, error)
        with unhurried(engine) as connection:
            notices.send_soon(connection, owed[count:])
        return Sent(count, str(error))
    return Sent(count)
