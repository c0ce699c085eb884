"""The audit trail: who changed what, and when."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from models.sql import database_now
from models.store.scope import Scope
from models.tables import audit, small_apps


def write(
    connection: sa.Connection,
    *,
    small_app_id: int | None,
    actor: str,
    verb: str,
    objects: Mapping[str, dict[str, Any] | None],
) -> None:
    """Record an action by `actor` on objects, with details of each, at the database's clock."""
    same = {"small_app_id": small_app_id, "at": database_now(), "actor": actor, "verb": verb}
    rows = [{"object": name, "details": details} for name, details in objects.items()]
    connection.execute(sa.insert(audit).values(same), rows)


def listed(
    connection: sa.Connection, scope: Scope, limit: int, before: int | None = None
) -> Sequence[sa.RowMapping]:
    """Return up to `limit` entries of the scope, the newest first, those before an id only."""
    query = (
        sa.select(audit, small_apps.c.name.label("app"))
        .outerjoin(small_apps, small_apps.c.id == audit.c.small_app_id)
        .where(scope.has(audit.c.small_app_id))
        .order_by(audit.c.id.desc())
        .limit(limit)
    )
    if before is not None:
        query = query.where(audit.c.id < before)
    return connection.execute(query).mappings().all()
