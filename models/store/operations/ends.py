"""The ends of operations as events: written only if another action is due by them."""

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import sqlalchemy as sa

from models.events import END_OF
from models.operation import Cause
from models.sql import insert_ignoring
from models.store.conditions import IS_LIVE
from models.tables import action_ends, actions, operations


class Raised(NamedTuple):
    """An end that is an event: of which action, and when."""

    action_uid: UUID
    at: datetime


# SQLite's RETURNING drops table names: columns of a subquery need distinct names.
_watched = sa.select(
    actions.c.uid.label("watched_uid"),
    actions.c.small_app_id.label("watched_app"),
    sa.literal(END_OF, sa.Text).concat(actions.c.name).label("watched_event"),
).subquery("watched")
_dependant = (
    sa.select(actions.c.small_app_id.label("due_app"), actions.c.event.label("due_event"))
    .where(IS_LIVE)
    .subquery("dependant")
)
# Returned with an end: whether another action is due by the ends of this one.
HAS_DEPENDANTS = (
    sa.exists()
    .where(_watched.c.watched_uid == operations.c.action_uid)
    .where(_dependant.c.due_app == _watched.c.watched_app)
    .where(_dependant.c.due_event == _watched.c.watched_event)
    .correlate(operations)
    .label("has_dependants")
)
_COLUMNS = ("action_uid", "operation_id", "state", "small_app_id", "subject", "ended_at")


def raise_event(connection: sa.Connection, ended: sa.Row[Any]) -> Raised:
    """Write the end of one operation, in the transaction that ends it, and return it.

    It is one event for an operation and its state: a retry that ends alike raises no second one.
    An operation of a backfill raises none, nor does that of an action that none depends on.
    """
    its = sa.select(
        operations.c.action_uid,
        operations.c.id,
        operations.c.state,
        operations.c.small_app_id,
        operations.c.subject,
        operations.c.finished_at,
    ).where(
        operations.c.id == ended.id,
        operations.c.cause != Cause.BACKFILL,
        HAS_DEPENDANTS.element,
    )
    connection.execute(insert_ignoring(connection, action_ends).from_select(_COLUMNS, its))
    return Raised(ended.action_uid, ended.finished_at)
