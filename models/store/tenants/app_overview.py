"""The overview of a small app: its actions and people."""

from typing import Any

import sqlalchemy as sa

from models.celery_task import HandOver
from models.sql import unindexed
from models.store.conditions import IS_RUNNING, NOT_DELETED
from models.store.overview import coming
from models.store.scope import Scope
from models.store.tenants import GIVEN_OWNER
from models.store.tenants.closing import closing_rows, next_open
from models.stored import document_in
from models.tables import (
    SENDS_TASK,
    actions,
    groups,
    operations,
    small_apps,
    users,
)
from models.trust import Trust

# How many actions are read for the one that is due next: calendars may leave nothing of the first.
NEXT_READ = 100


def overview(connection: sa.Connection, small_app_id: int) -> dict[str, Any]:
    """Return the overview of a small app as JSON, with its document and the trust in it."""
    return {
        **_row(connection, small_app_id),
        "next": _next(connection, small_app_id),
    }


def names_in(connection: sa.Connection, small_app_id: int, most: int) -> dict[str, list[str]]:
    """Return the names of a small app's first groups and active actions, up to `most` of each."""
    its_own = sa.select(groups.c.name).where(groups.c.small_app_id == small_app_id)
    first = its_own.order_by(groups.c.name).limit(most)
    active = _active_names(small_app_id, most)
    return {
        "groups": list(connection.execute(first).scalars()),
        "actions": list(connection.execute(active).scalars()),
    }


def handed_over(
    connection: sa.Connection, small_app_id: int, limit: int
) -> list[tuple[HandOver, str]]:
    """Return the Celery tasks that up to `limit` actions of a small app send, with their queues."""
    query = sa.select(actions.c.plan).where(
        actions.c.small_app_id == small_app_id, NOT_DELETED, sa.text(SENDS_TASK)
    )
    plans = connection.execute(query.order_by(actions.c.name).limit(limit)).scalars()
    return [
        (plan.hand_over, plan.queue)
        for plan in plans
        # A broken plan hands over nothing.
        if getattr(plan, "hand_over", None) is not None
    ]


def _active_names(small_app_id: int, limit: int) -> sa.Select[Any]:
    query = sa.select(actions.c.name).where(
        actions.c.small_app_id == small_app_id,
        actions.c.active,
        actions.c.deleted_at.is_(None),
        actions.c.owner.is_distinct_from(GIVEN_OWNER),
    )
    return query.order_by(actions.c.name).limit(limit)


def _next(connection: sa.Connection, small_app_id: int) -> dict[str, Any] | None:
    """Return the clock action that is due next."""
    rows = closing_rows(connection, coming(connection, Scope(small_app_id), NEXT_READ))
    due = [(at, row["name"]) for row in rows if (at := next_open(row)) is not None]
    at, name = min(due, default=(None, None))
    return None if at is None else {"action": name, "at": at}


def _row(connection: sa.Connection, small_app_id: int) -> dict[str, Any]:
    """Return the stored document, how far the app is trusted, and the counts."""
    there = actions.c.deleted_at.is_(None)
    query = sa.select(
        small_apps.c.document,
        small_apps.c.trust,
        _count(actions, there).label("total"),
        _count(actions, there, actions.c.active).label("active"),
        _running().label("running"),
        _count(users).label("users"),
        _count(groups).label("groups"),
    ).where(small_apps.c.id == small_app_id)
    row = dict(connection.execute(query).mappings().one())
    counts = {"total": row.pop("total"), "active": row.pop("active")}
    trust: Trust = row.pop("trust")
    trusted = {"trusted": trust.is_trusted, "queues": trust.queues, "tasks": trust.tasks}
    return {**row, **trusted, "actions": counts, "document": document_in(row["document"])}


def _running() -> sa.ScalarSelect[int]:
    # Few run: SQLite would read all that the small app ever ran.
    its = unindexed(operations.c.small_app_id == small_apps.c.id)
    query = sa.select(sa.func.count()).select_from(operations)
    return query.where(IS_RUNNING, its).correlate(small_apps).scalar_subquery()


def _count(table: sa.Table, *where: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    query = sa.select(sa.func.count()).select_from(table)
    return query.where(table.c.small_app_id == small_apps.c.id, *where).scalar_subquery()
