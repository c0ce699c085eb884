"""The overview of a small app: its domains, actions and people."""

from typing import Any

import sqlalchemy as sa

from models.operation import OperationState
from models.sql import stands_in
from models.store.actions.cursors import UNSCHEDULED
from models.tables import (
    action_cursor,
    actions,
    domains,
    groups,
    operations,
    small_apps,
    snapshots,
    users,
)
from small_apps.document import GIVEN


def overview(connection: sa.Connection, small_app_id: int) -> dict[str, Any]:
    """Return the overview of a small app as JSON."""
    return {
        "domains": _domains(connection, small_app_id),
        "actions": _actions(connection, small_app_id),
        "next": _next(connection, small_app_id),
        "running": _running(connection, small_app_id),
        "users": _count(connection, users, small_app_id),
        "groups": _count(connection, groups, small_app_id),
    }


def active_names(connection: sa.Connection, small_app_id: int, limit: int) -> list[str]:
    """Return the names of up to `limit` user-defined active actions of a small app, in order."""
    query = sa.select(actions.c.name).where(
        actions.c.small_app_id == small_app_id,
        actions.c.active,
        actions.c.deleted_at.is_(None),
        actions.c.owner.is_distinct_from(GIVEN),
    )
    return list(connection.execute(query.order_by(actions.c.name).limit(limit)).scalars())


def apps_with(connection: sa.Connection, thing: str, name: str, limit: int) -> list[str]:
    """Return up to `limit` small apps that have an `action` or `user` of this name, by name."""
    if thing == "action":
        mine = sa.select(actions.c.small_app_id).where(
            actions.c.name == name, actions.c.deleted_at.is_(None)
        )
    else:
        mine = sa.select(users.c.small_app_id).where(users.c.id == name)
    there = small_apps.c.deleted_at.is_(None) & small_apps.c.id.in_(mine)
    query = sa.select(small_apps.c.name).where(there).order_by(small_apps.c.name)
    return list(connection.execute(query.limit(limit)).scalars())


def _domains(connection: sa.Connection, small_app_id: int) -> list[dict[str, Any]]:
    staged, published = snapshots.alias("staged"), snapshots.alias("published")
    query = (
        sa.select(
            domains.c.name,
            staged.c.row_count.label("staged_rows"),
            domains.c.refreshed_at,
            published.c.row_count.label("published_rows"),
            domains.c.published_at,
        )
        .outerjoin(staged, staged.c.id == domains.c.staging_id)
        .outerjoin(published, published.c.id == domains.c.production_id)
        .where(domains.c.small_app_id == small_app_id)
        .order_by(domains.c.name)
    )
    return [dict(row) for row in connection.execute(query).mappings()]


def _actions(connection: sa.Connection, small_app_id: int) -> dict[str, int]:
    is_active = sa.cast(actions.c.active, sa.Integer)
    row = connection.execute(
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(is_active), 0)).where(
            actions.c.small_app_id == small_app_id, actions.c.deleted_at.is_(None)
        )
    ).one()
    return {"total": row[0], "active": row[1]}


def _next(connection: sa.Connection, small_app_id: int) -> dict[str, Any] | None:
    """Return the clock action that is due next, among those that a tick has scheduled."""
    query = (
        sa.select(actions.c.name.label("action"), action_cursor.c.next_occurrence_at.label("at"))
        .join(action_cursor, action_cursor.c.action_uid == actions.c.uid)
        .where(actions.c.small_app_id == small_app_id, actions.c.deleted_at.is_(None))
        .where(action_cursor.c.next_occurrence_at > UNSCHEDULED)
        .order_by(action_cursor.c.next_occurrence_at, actions.c.name)
        .limit(1)
    )
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else dict(row)


def _running(connection: sa.Connection, small_app_id: int) -> int:
    is_running = stands_in(operations.c.state, {OperationState.RUNNING})
    return _count(connection, operations, small_app_id, is_running)


def _count(
    connection: sa.Connection, table: sa.Table, small_app_id: int, *where: sa.ColumnElement[bool]
) -> int:
    query = sa.select(sa.func.count()).select_from(table)
    of_app = query.where(table.c.small_app_id == small_app_id, *where)
    return int(connection.execute(of_app).scalar_one())
