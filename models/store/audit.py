"""Write the audit trail."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from models.sql import database_now
from models.tables import audit


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
