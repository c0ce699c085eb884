"""Detect that the broker lost its messages, and release the queued operations for resending."""

import sqlalchemy as sa

from broker import marker
from broker.marker import Mark
from models.store import facts
from models.store.operations import outbox
from runtime.database import reading
from runtime.logs.events import EventLog

logger = EventLog("minutebook.broker")


class BrokerWatch:
    """Watches the mark that one daemon keeps in the broker."""

    def __init__(self) -> None:
        self._mark: Mark | None = None

    def look(self, engine: sa.Engine) -> int:
        """Return how many operations are sent again because the broker lost their messages.

        Raises BrokerUnavailable. Resending a message that was not lost is harmless.
        """
        mark = self._mark or _stored(engine)
        if self._keeps(mark):
            return 0
        stored = _stored(engine)
        # Another daemon may have detected it first.
        is_another = stored is not None and (mark is None or stored.name != mark.name)
        if is_another and self._keeps(stored):
            return 0
        return self._replace(engine, stored)

    def store(self, connection: sa.Connection) -> None:
        """Store the mark's number for daemons that start later."""
        if self._mark is not None:
            facts.raise_mark(connection, self._mark.name, self._mark.number)

    def _keeps(self, mark: Mark | None) -> bool:
        found = None if mark is None else marker.look(mark)
        self._mark = found or self._mark
        return found is not None

    def _replace(self, engine: sa.Engine, lost: Mark | None) -> int:
        # Made first: if this daemon dies now, the next one detects the loss again.
        made = marker.make()
        if made is None:
            return 0
        name = None if lost is None else lost.name
        with engine.begin() as connection:
            is_first = facts.replace_mark(connection, name, made.name, made.number)
            # The first mark of an installation tells nothing of the messages before it.
            has_lost = is_first and lost is not None
            count = outbox.release_lost(connection) if has_lost else 0
        if not is_first:
            marker.forget(made)
            return 0
        self._mark = made
        if lost is not None:
            marker.forget(lost)
        if count:
            logger.warning(
                "broker_lost_messages",
                "the broker lost its messages: {operations} operations are sent again",
                count,
            )
        return count


def _stored(engine: sa.Engine) -> Mark | None:
    with reading(engine) as connection:
        found = facts.mark(connection)
    return None if found is None else Mark(*found)
