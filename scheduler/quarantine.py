"""Quarantine an action that cannot be decided: it is not due until its next change."""

from uuid import UUID

import sqlalchemy as sa

from models.store import actions
from runtime.logs.events import EventLog

logger = EventLog("minutebook.tick")

LONGEST = 1_000


def quarantine(connection: sa.Connection, uid: UUID, error: Exception) -> None:
    """Quarantine an action, whose cursor is locked, with the error as the reason."""
    text = "; ".join(str(error).splitlines())
    reason = f"{type(error).__name__}: {text[:LONGEST]}"
    actions.quarantined(connection, uid, reason)
    logger.error("action_quarantined", "action {action} is quarantined: {reason}", uid, reason)
