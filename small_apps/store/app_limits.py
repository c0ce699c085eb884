"""How much small apps use of their limits now."""

from dataclasses import dataclass

import sqlalchemy as sa

from models.limits import is_close
from models.store import usage
from models.store.operations import waiting
from models.store.usage import Used
from models.tables import domains, users
from runtime.limit_settings import LimitSettings

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Use:
    """What a small app uses of one limit, named as its setting is."""

    small_app_id: int
    limit: str
    used: int
    most: int


def close(
    connection: sa.Connection, limits: LimitSettings, small_app_id: int | None = None
) -> list[Use]:
    """Return the limits that small apps, or this one, are close to or have reached."""
    counts = {
        "domains": _counted(connection, domains, small_app_id),
        "users": _counted(connection, users, small_app_id),
        "waiting": waiting.counted(connection),
        "import_minutes": {
            app: amount // MINUTE_MS
            for app, amount in usage.all_spent(connection, Used.IMPORT_MS).items()
        },
        "messages": usage.all_spent(connection, Used.MESSAGES),
    }
    return [
        Use(app, limit, count, getattr(limits, limit))
        for limit, counted in counts.items()
        for app, count in sorted(counted.items())
        if small_app_id in {None, app} and is_close(count, getattr(limits, limit))
    ]


def _counted(
    connection: sa.Connection, table: sa.Table, small_app_id: int | None
) -> dict[int, int]:
    app = table.c.small_app_id
    query = sa.select(app, sa.func.count()).group_by(app)
    if small_app_id is not None:
        query = query.where(app == small_app_id)
    return {row[0]: row[1] for row in connection.execute(query)}
