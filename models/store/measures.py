"""What `/metrics` asks of the database: how it stands, and what ended lately.

Each query reads a part of an index.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from models.operation import OUTCOMES
from models.sql import database_now, stands_in
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
    deliveries,
    domains,
    missed_spans,
    notices,
    operations,
    small_apps,
    ticks,
)

Rows = Sequence[Any]
_COUNT = sa.func.count()
_TIMES = _COUNT.label("times")


@dataclass(frozen=True, slots=True)
class EndResult:
    """What ended within (since, until]: rows with an app, a state and how many, if no others.

    `missed` are missed occurrences that have no operations, `runs` operations with an outcome that
    began, and `ticks` the duration and report of each.
    """

    operations: Rows
    missed: Rows
    deliveries: Rows
    notices: Rows
    runs: Rows
    ticks: Rows


def ended(connection: sa.Connection, since: datetime, until: datetime) -> EndResult:
    """Return what ended within (since, until]."""

    def within(at: sa.Column[Any]) -> sa.ColumnElement[bool]:
        return sa.and_(at > since, at <= until)

    has_ended = within(operations.c.finished_at)
    of_runs = (
        *("queue", "cause", "attempt", "occurrence_at", "recorded_at"),
        *("first_started_at", "started_at", "finished_at", "steps"),
    )
    has_run = sa.and_(
        stands_in(operations.c.state, OUTCOMES), operations.c.first_started_at.is_not(None)
    )
    app = actions.c.small_app_id
    queries = (
        _by_state(operations).where(has_ended),
        sa.select(app, sa.func.sum(sa.cast(missed_spans.c.count, sa.Float)).label("times"))
        # An inner join lets SQLite read all actions first.
        .outerjoin(actions, actions.c.uid == missed_spans.c.action_uid)
        .where(within(missed_spans.c.recorded_at))
        .group_by(app),
        sa.select(operations.c.small_app_id, deliveries.c.state, _TIMES)
        .join(deliveries, deliveries.c.operation_id == operations.c.id)
        .where(within(deliveries.c.updated_at), deliveries.c.state != "sending")
        .group_by(operations.c.small_app_id, deliveries.c.state),
        _by_state(notices).where(within(notices.c.finished_at)),
        sa.select(*(operations.c[name] for name in of_runs)).where(has_ended, has_run),
        sa.select(ticks.c.duration_ms, ticks.c.report).where(within(ticks.c.finished_at)),
    )
    return EndResult(*(connection.execute(query).all() for query in queries))


def _by_state(table: sa.Table) -> sa.Select[Any]:
    grouped = (table.c.small_app_id, table.c.state)
    return sa.select(*grouped, _TIMES).group_by(*grouped)


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
        _TIMES,
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
    query = sa.select(operations.c.small_app_id, _TIMES).where(
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
    query = sa.select(notices.c.small_app_id, _TIMES)
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
    query = sa.select(actions.c.small_app_id, kind, _TIMES)
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
