"""The quiet period of an installation: what is due is recorded, and sent when the period ends.

An operation that is to be sent waits until the end, by its `not_before`. What the broker already
has may still start.
"""

from datetime import datetime

import sqlalchemy as sa

from models.sql import database_now, read_clock
from models.store import facts
from models.store.conditions import IS_UNSTARTED
from models.stored import instant_in
from models.tables import operations
from models.values import format_instant

KEY = "quiet until"


def until(connection: sa.Connection) -> datetime | None:
    """Return when the quiet period ends, in UTC; None without one."""
    fact = facts.fact_query(KEY).scalar_subquery()
    now, value = connection.execute(sa.select(database_now(), fact)).one()
    ends_at = instant_in(value)
    return ends_at if ends_at is not None and ends_at > now else None


def begin(connection: sa.Connection, ends_at: datetime) -> None:
    """Begin a quiet period, or move the end of the one that is on."""
    # Operations that another process puts off to the present end are moved as well.
    facts.hold_fact(connection, KEY)
    _move(connection, ends_at)
    facts.set_fact(connection, KEY, format_instant(ends_at))


def end(connection: sa.Connection) -> None:
    """End the quiet period; the next tick sends what waited for it."""
    begin(connection, read_clock(connection).replace(microsecond=0))


def waiting(connection: sa.Connection, ends_at: datetime) -> int:
    """Return how many operations wait for the end of the period."""
    return connection.execute(sa.select(sa.func.count()).where(*_waits(ends_at))).scalar_one()


def _move(connection: sa.Connection, at: datetime) -> None:
    """Let what waits for the end of the period wait for `at`."""
    ends_at = until(connection)
    if ends_at is not None:
        moved = sa.update(operations).where(*_waits(ends_at))
        connection.execute(moved.values(not_before=at))


def _waits(ends_at: datetime) -> tuple[sa.ColumnElement[bool], ...]:
    return IS_UNSTARTED, operations.c.not_before == ends_at
