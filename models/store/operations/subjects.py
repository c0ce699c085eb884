"""Decide whether an operation about a user may still start."""

from datetime import datetime
from typing import Protocol

import sqlalchemy as sa

from models.action.plan import Plan
from models.events import LAST_SEEN
from models.store.people import users

RECIPIENT = "recipient"
SEEN_AGAIN = "seen again"


class AboutSubject(Protocol):
    """A recorded operation, perhaps about a user and an event."""

    @property
    def small_app_id(self) -> int: ...
    @property
    def subject(self) -> str | None: ...
    @property
    def event_at(self) -> datetime | None: ...
    @property
    def plan(self) -> Plan: ...


def why_not(connection: sa.Connection, recorded: AboutSubject) -> str | None:
    """Return why an operation about a user must not start now; None if it may.

    The filter excludes the user, the user is gone, or was seen again since the event.
    """
    if recorded.subject is None:
        return None
    user = users.find(connection, recorded.small_app_id, recorded.subject)
    trigger = recorded.plan.on_event
    if user is None or (trigger is not None and not trigger.subjects.counts(user)):
        return RECIPIENT
    if trigger is None or trigger.event != LAST_SEEN or recorded.event_at is None:
        return None
    return None if user.last_seen_at == recorded.event_at else SEEN_AGAIN
