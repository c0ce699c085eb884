"""The audit trail: who changed what, and when."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.bulk_sql import insert_all
from models.sql import database_now
from models.store.scope import Scope
from models.tables import actions, audit, operations, small_apps, tokens

_UID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def write(
    connection: sa.Connection,
    *,
    small_app_id: int | None,
    actor: str,
    verb: str,
    objects: Mapping[str, dict[str, Any] | None],
) -> None:
    """Record an action by `actor` on objects, with details of each, at the database's clock."""
    given = {"small_app_id": small_app_id, "actor": actor, "verb": verb}
    same = {name: sa.literal(value, audit.c[name].type) for name, value in given.items()}
    rows = [{"object": name, "details": details} for name, details in objects.items()]
    insert_all(connection, audit, rows, {**same, "at": database_now()})


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


def names_of(connection: sa.Connection, objects: Collection[str]) -> dict[str, str]:
    """Return the names of actions, of operations (their action's) and of tokens, by their ids.

    A deleted action has its last name; a token has its person's, or its role.
    """
    uids = [UUID(text) for text in objects if _UID.fullmatch(text)]
    of_actions = sa.select(actions.c.uid, actions.c.name).where(actions.c.uid.in_(uids))
    of_operations = (
        sa.select(operations.c.id, actions.c.name)
        .join(actions, actions.c.uid == operations.c.action_uid)
        .where(operations.c.id.in_(uids))
    )
    of_tokens = sa.select(tokens.c.id, sa.func.coalesce(tokens.c.name, tokens.c.role)).where(
        tokens.c.id.in_(list(objects))
    )
    named = of_actions.union_all(of_operations)
    found = [*connection.execute(named), *connection.execute(of_tokens)]
    return {str(id): name for id, name in found}
