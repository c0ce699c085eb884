"""How much small apps use of their limits now."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from models.limits import is_close
from models.store import usage
from models.store.operations import waiting
from models.store.usage import Used
from models.tables import domains, users
from runtime.sections.limits import LimitSettings

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Use:
    """What a small app uses of one limit, named as its setting is."""

    small_app_id: int
    limit: str
    used: int
    most: int


def close(
    connection: sa.Connection,
    limits: LimitSettings,
    now: datetime,
    small_app_id: int | None = None,
) -> list[Use]:
    """Return the limits that small apps, or this one, are close to or have reached."""
    spent = usage.all_spent(connection, now)
    counts = {
        **_counted(connection, small_app_id),
        "import_minutes": {
            app: amount // MINUTE_MS for app, amount in spent[Used.IMPORT_MS].items()
        },
        "messages": spent[Used.MESSAGES],
    }
    return [
        Use(app, limit, count, getattr(limits, limit))
        for limit, counted in counts.items()
        for app, count in sorted(counted.items())
        if small_app_id in {None, app} and is_close(count, getattr(limits, limit))
    ]


def _counted(connection: sa.Connection, small_app_id: int | None) -> dict[str, dict[int, int]]:
    """Return how many domains, users and waiting operations each small app has, by the limit."""
    waits = waiting.counting().subquery()
    parts = [
        _counting("domains", domains, small_app_id),
        _counting("users", users, small_app_id),
        sa.select(sa.literal("waiting"), waits.c.app, waits.c.number),
    ]
    found: dict[str, dict[int, int]] = {"domains": {}, "users": {}, "waiting": {}}
    for limit, app, number in connection.execute(sa.union_all(*parts)):
        found[limit][app] = number
    return found


def _counting(limit: str, table: sa.Table, small_app_id: int | None) -> sa.Select[Any]:
    app = table.c.small_app_id
    query = sa.select(sa.literal(limit), app, sa.func.count()).group_by(app)
    return query if small_app_id is None else query.where(app == small_app_id)
