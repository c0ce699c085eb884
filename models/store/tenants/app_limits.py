"""How much small apps use of their limits now."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any

import sqlalchemy as sa

from minutebook.steps import SmallApp
from models.errors import Refused
from models.limits import is_close, too_many_actions
from models.store import usage
from models.store.conditions import of_app
from models.store.operations import waiting
from models.store.usage import Used
from models.tables import actions, domains, small_apps, snapshots, users
from runtime.sections.limits import LimitSettings

MINUTE_MS = 60_000
MEBIBYTE = 2**20
# The limits that a small app may have of its own.
OWN = ("actions", "disk_mb")


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
    own = _own_limits(connection, limits, small_app_id)
    counts = {
        **_counted(connection, small_app_id),
        "import_minutes": {
            app: amount // MINUTE_MS for app, amount in spent[Used.IMPORT_MS].items()
        },
        "messages": spent[Used.MESSAGES],
        "disk_mb": {
            app: taken // MEBIBYTE for app, taken in stored_bytes(connection, small_app_id).items()
        },
    }
    return [
        Use(app, limit, count, most)
        for limit, counted in counts.items()
        for app, count in sorted(counted.items())
        if small_app_id in {None, app}
        and is_close(count, most := getattr(own.get(app, limits), limit))
    ]


def limits_of(connection: sa.Connection, limits: LimitSettings, small_app_id: int) -> LimitSettings:
    """Return the limits of a small app: those of the installation, and its own instead of some."""
    query = sa.select(small_apps.c.limits).where(small_apps.c.id == small_app_id)
    return with_own(limits, connection.execute(query).scalar_one_or_none())


def with_own(limits: LimitSettings, own: Mapping[str, Any] | None) -> LimitSettings:
    """Return limits with a small app's own ones; unreadable ones are ignored."""
    known = {name: (own or {}).get(name) for name in OWN}
    changes = {name: most for name, most in known.items() if isinstance(most, int) and most >= 0}
    return limits.model_copy(update=changes)


def set_own(connection: sa.Connection, small_app_id: int, own: Mapping[str, int]) -> None:
    """Store a small app's own limits."""
    its = sa.update(small_apps).where(small_apps.c.id == small_app_id)
    connection.execute(its.values(limits=dict(own)))


def own_of(connection: sa.Connection, small_app_id: int) -> dict[str, int]:
    """Return a small app's own limits."""
    query = sa.select(small_apps.c.limits).where(small_apps.c.id == small_app_id)
    stored = connection.execute(query).scalar_one_or_none() or {}
    return {name: stored[name] for name in OWN if isinstance(stored.get(name), int)}


def check_actions(connection: sa.Connection, app: SmallApp, more: int, most: int) -> None:
    """Raise Refused if the small app would have more than `most` actions; 0 is no limit."""
    if not most:
        return
    count = sa.select(sa.func.count()).select_from(actions).where(of_app(app.id))
    total = connection.execute(count).scalar_one() + more
    if total > most:
        raise Refused(too_many_actions(app.name, total, most))


def stored_bytes(connection: sa.Connection, small_app_id: int | None = None) -> dict[int, int]:
    """Return how many bytes the snapshots of each small app take, old ones included."""
    # As a float: a hand may have written more than an integer of the database holds.
    app, size = snapshots.c.small_app_id, sa.func.sum(sa.cast(snapshots.c.byte_count, sa.Float))
    query = sa.select(app, size).group_by(app)
    if small_app_id is not None:
        query = query.where(app == small_app_id)
    found = connection.execute(query).all()
    return {one: int(total) for one, total in found if total is not None and isfinite(total)}


def _counted(connection: sa.Connection, small_app_id: int | None) -> dict[str, dict[int, int]]:
    """Return how many of what is counted each small app has, by the limit."""
    waits = waiting.counting().subquery()
    parts = [
        _counting("domains", domains, small_app_id),
        _counting("users", users, small_app_id),
        sa.select(sa.literal("waiting"), waits.c.app, waits.c.number),
        _counting("actions", actions, small_app_id).where(actions.c.deleted_at.is_(None)),
    ]
    found: dict[str, dict[int, int]] = defaultdict(dict)
    for limit, app, number in connection.execute(sa.union_all(*parts)):
        found[limit][app] = number
    return found


def _own_limits(
    connection: sa.Connection, limits: LimitSettings, small_app_id: int | None
) -> dict[int, LimitSettings]:
    """Return the limits of the small apps that have some of their own, by id."""
    query = sa.select(small_apps.c.id, small_apps.c.limits).where(small_apps.c.limits.is_not(None))
    if small_app_id is not None:
        query = query.where(small_apps.c.id == small_app_id)
    return {row.id: with_own(limits, row.limits) for row in connection.execute(query)}


def _counting(limit: str, table: sa.Table, small_app_id: int | None) -> sa.Select[Any]:
    app = table.c.small_app_id
    query = sa.select(sa.literal(limit), app, sa.func.count()).group_by(app)
    return query if small_app_id is None else query.where(app == small_app_id)
