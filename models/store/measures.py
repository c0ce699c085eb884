"""What `/metrics` asks of the database beside the totals; each query reads the end of an index."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from models.sql import database_now
from models.store.conditions import (
    IS_ACTIVE_BACKFILL,
    IS_EXPECTED,
    IS_OWED,
    IS_RUNNING,
    IS_UNSTARTED,
    NOT_DELETED,
)
from models.tables import (
    action_cursor,
    action_state,
    actions,
    domains,
    notices,
    operations,
    small_apps,
)

Rows = Sequence[Any]
_COUNT = sa.func.count()


def app_names(connection: sa.Connection) -> dict[int, str]:
    """Return the name of each small app, deleted ones too, the oldest first."""
    query = sa.select(small_apps.c.id, small_apps.c.name).order_by(small_apps.c.id)
    return {row.id: row.name for row in connection.execute(query)}


def operations_now(connection: sa.Connection) -> Rows:
    """Return app, queue, state and count of what waits or runs.

    `oldest_at` is when the oldest was recorded, `beaten_at` the oldest heartbeat.
    """
    grouped = (operations.c.small_app_id, operations.c.queue, operations.c.state)
    shown = (
        *grouped,
        _COUNT.label("times"),
        sa.func.min(operations.c.recorded_at).label("oldest_at"),
        sa.func.min(operations.c.heartbeat_at).label("beaten_at"),
    )
    # One query per state, because each state has a partial index.
    parts = [
        sa.select(*shown).where(stands).group_by(*grouped) for stands in (IS_UNSTARTED, IS_RUNNING)
    ]
    return connection.execute(sa.union_all(*parts)).all()


def overdue(connection: sa.Connection, late: timedelta) -> Rows:
    """Return app and count of operations that a tick recorded `late` ago and no worker started."""
    query = sa.select(operations.c.small_app_id, _COUNT.label("times")).where(
        IS_EXPECTED, operations.c.recorded_at < database_now(-late)
    )
    return connection.execute(query.group_by(operations.c.small_app_id)).all()


def leases_expired(connection: sa.Connection, lease: timedelta) -> int:
    """Return how many running operations have been silent for longer than a lease."""
    silent = operations.c.heartbeat_at < database_now(-lease)
    return _number(connection, sa.select(_COUNT).where(IS_RUNNING, silent))


def due(connection: sa.Connection, most: int) -> int:
    """Return how many actions the next tick decides, at most `most`."""
    past = action_cursor.c.next_occurrence_at <= database_now()
    rows = sa.select(action_cursor.c.action_uid).where(past).limit(most).subquery()
    return _number(connection, sa.select(_COUNT).select_from(rows))


def notices_owed(connection: sa.Connection) -> Rows:
    """Return app and count of the hooks and alerts that are to be delivered."""
    query = sa.select(notices.c.small_app_id, _COUNT.label("times"))
    return connection.execute(query.where(IS_OWED).group_by(notices.c.small_app_id)).all()


def backfills_active(connection: sa.Connection) -> int:
    """Return how many backfills are in progress."""
    return _number(connection, sa.select(_COUNT).where(IS_ACTIVE_BACKFILL))


def actions_by_app(connection: sa.Connection) -> Rows:
    """Return app, whether active and not quarantined, and count of actions."""
    kind = sa.case(
        (actions.c.set_aside.is_not(None), "quarantined"),
        (actions.c.active, "active"),
        else_="paused",
    ).label("kind")
    query = sa.select(actions.c.small_app_id, kind, _COUNT.label("times"))
    grouped = query.where(NOT_DELETED).group_by(actions.c.small_app_id, kind)
    return connection.execute(grouped).all()


def alerts_open(connection: sa.Connection) -> Rows:
    """Return app, count of actions with an alert on failures, and with one on what is overdue."""
    failing, late = action_state.c.alerted_at, action_state.c.overdue_alerted_at
    query = (
        sa.select(
            actions.c.small_app_id,
            sa.func.count(failing).label("failing"),
            sa.func.count(late).label("overdue"),
        )
        .join(actions, actions.c.uid == action_state.c.action_uid)
        .where(failing.is_not(None) | late.is_not(None), NOT_DELETED)
        .where(action_state.c.subject == "")
    )
    return connection.execute(query.group_by(actions.c.small_app_id)).all()


def data_ages(connection: sa.Connection) -> Rows:
    """Return each app's oldest refresh and publish of its domains."""
    query = sa.select(
        domains.c.small_app_id,
        sa.func.min(domains.c.refreshed_at).label("refreshed_at"),
        sa.func.min(domains.c.published_at).label("published_at"),
    ).join(small_apps, small_apps.c.id == domains.c.small_app_id)
    live = query.where(small_apps.c.deleted_at.is_(None))
    return connection.execute(live.group_by(domains.c.small_app_id)).all()


def database_bytes(connection: sa.Connection) -> int:
    """Return the size of the database on disk."""
    if connection.dialect.name == "postgresql":
        return _number(connection, sa.select(sa.func.pg_database_size(sa.func.current_database())))
    pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    return int(pages) * int(connection.exec_driver_sql("PRAGMA page_size").scalar_one())


def _number(connection: sa.Connection, query: sa.Select[Any]) -> int:
    return int(connection.execute(query).scalar_one())
