"""Users by a part of their id, their address or their name."""

from typing import Any

import sqlalchemy as sa

from models.sql import dicts
from models.store.scope import Scope
from models.tables import small_apps, users

# No index finds a part of a text, so at most so many are read.
MOST_READ = 100_000


def like(connection: sa.Connection, scope: Scope, text: str, limit: int) -> list[dict[str, Any]]:
    """Return up to `limit` users with this text in id, address or name, by small app and id."""
    in_order = (users.c.small_app_id, users.c.id)
    read = sa.select(*in_order, users.c.email, users.c.name)
    its_own = read.where(scope.has(users.c.small_app_id)).order_by(*in_order)
    some = its_own.limit(MOST_READ).subquery("some")
    texts = (some.c.id, some.c.email, some.c.name)
    found = (
        sa.select(*texts, small_apps.c.name.label("app"))
        .join(small_apps, small_apps.c.id == some.c.small_app_id)
        .where(small_apps.c.deleted_at.is_(None))
        .where(sa.or_(*(one.icontains(text, autoescape=True) for one in texts)))
        .order_by(some.c.small_app_id, some.c.id)
    )
    return dicts(connection, found.limit(limit))
