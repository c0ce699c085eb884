"""How much small apps have used of limits that begin anew each day or minute, in UTC."""

from datetime import datetime, timedelta
from enum import StrEnum

import sqlalchemy as sa

from models.sql import insert_ignoring, read_clock
from models.tables import app_usage


class Used(StrEnum):
    """What is counted: the time of refreshes a day, and mails a minute."""

    IMPORT_MS = "import_ms"
    MESSAGES = "messages"


def spent(connection: sa.Connection, small_app_id: int, what: Used) -> int:
    """Return how much of it the small app has used in the present day or minute."""
    at = _begin(what, read_clock(connection))
    query = sa.select(app_usage.c.amount).where(
        _its(small_app_id, what), app_usage.c.starts_at == at
    )
    return connection.execute(query).scalar_one_or_none() or 0


def all_spent(connection: sa.Connection, now: datetime) -> dict[Used, dict[int, int]]:
    """Return how much each small app has used in the day or minute of `now`, by its id."""
    in_it = [
        (app_usage.c.what == what.value) & (app_usage.c.starts_at == _begin(what, now))
        for what in Used
    ]
    query = sa.select(app_usage.c.what, app_usage.c.small_app_id, app_usage.c.amount)
    found: dict[Used, dict[int, int]] = {what: {} for what in Used}
    for row in connection.execute(query.where(sa.or_(*in_it))):
        found[Used(row.what)][row.small_app_id] = row.amount
    return found


def spend(
    connection: sa.Connection, small_app_id: int, what: Used, amount: int, most: int = 0
) -> int:
    """Count `amount` more, up to `most` in all (0: any number); return how much was counted."""
    its = _its(small_app_id, what)
    at = _begin(what, read_clock(connection))
    key = {"small_app_id": small_app_id, "what": what.value}
    first = insert_ignoring(connection, app_usage).values(**key, starts_at=at, amount=0)
    connection.execute(first)
    locked = sa.select(app_usage.c.starts_at, app_usage.c.amount).where(its).with_for_update()
    row = connection.execute(locked).one()
    before = row.amount if row.starts_at == at else 0
    granted = min(amount, max(0, most - before)) if most else amount
    values = {"starts_at": at, "amount": before + granted}
    connection.execute(sa.update(app_usage).where(its).values(values))
    return granted


def _its(small_app_id: int, what: Used) -> sa.ColumnElement[bool]:
    return sa.and_(app_usage.c.small_app_id == small_app_id, app_usage.c.what == what.value)


def _begin(what: Used, now: datetime) -> datetime:
    minute = now.replace(second=0, microsecond=0)
    return minute - timedelta(hours=now.hour, minutes=now.minute) if what in _DAILY else minute


_DAILY = {Used.IMPORT_MS}
