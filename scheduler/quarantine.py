"""Quarantine an action that cannot be decided: it is not due until its next change."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import sqlalchemy as sa

from models.store import actions
from models.store.actions import cursors
from runtime.database import is_of_no_row
from runtime.logs.events import EventLog
from scheduler.record import Decided, Recorded

logger = EventLog("minutebook.tick")

LONGEST = 1_000
# Not made anew for each of the thousands of actions of a batch.
NOTHING = Recorded()


def quarantine(connection: sa.Connection, uid: UUID, error: Exception) -> None:
    """Quarantine an action, whose cursor is locked, with the error as the reason."""
    text = "; ".join(str(error).splitlines())
    reason = f"{type(error).__name__}: {text[:LONGEST]}"
    actions.quarantined(connection, uid, reason)
    logger.error("action_quarantined", "action {action} is quarantined: {reason}", uid, reason)


@dataclass
class Quarantine:
    """The broken actions of a tick: how many were quarantined, and which are left to the next."""

    count: int = 0
    # Those whose row a hand keeps locked, and others that their finder adds.
    left: set[UUID] = field(default_factory=set)

    def add(self, connection: sa.Connection, uid: UUID, error: Exception) -> None:
        """Quarantine an action, whose cursor is locked, unless its row is locked by another."""
        if not cursors.hold_action(connection, uid):
            self.left.add(uid)
            return
        quarantine(connection, uid, error)
        self.count += 1

    def recorded(
        self,
        connection: sa.Connection,
        decided: Sequence[Decided],
        record: Callable[[sa.Connection, Sequence[Decided]], Recorded],
    ) -> Recorded:
        """Return what `record` does with decisions; one by one, if the database refuses them all.

        The broken one is quarantined. Errors that no row causes are raised.
        """
        try:
            with connection.begin_nested():
                return record(connection, decided)
        except Exception as error:  # one broken action must not stop the others
            if is_of_no_row(error):
                raise
            if len(decided) == 1:
                self.add(connection, decided[0].action.uid, error)
                return NOTHING
            return sum((self.recorded(connection, [one], record) for one in decided), NOTHING)
