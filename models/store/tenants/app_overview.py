"""The overview of a small app: its domains, actions and people."""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from models.celery_task import HandOver
from models.sql import dicts
from models.store.conditions import IS_RUNNING, NOT_DELETED
from models.store.overview import coming
from models.store.scope import Scope
from models.store.tenants.closing import closing_rows, next_open
from models.stored import document_in
from models.tables import (
    SENDS_TASK,
    actions,
    app_documents,
    domains,
    groups,
    operations,
    small_apps,
    snapshots,
    templates,
    users,
)
from models.tenant.settings import GIVEN_OWNER
from models.tenant.staged import KINDS
from models.trust import Trust

# How many actions are read for the one that is due next: calendars may leave nothing of the first.
NEXT_READ = 100
LAST = datetime(9999, 1, 1, tzinfo=UTC)


def overview(connection: sa.Connection, small_app_id: int) -> dict[str, Any]:
    """Return the overview of a small app as JSON, with its document and the trust in it."""
    return {
        **_row(connection, small_app_id),
        "domains": domains_of(connection, small_app_id),
        "next": _next(connection, small_app_id),
    }


def names_in(connection: sa.Connection, small_app_id: int, most: int = 0) -> dict[str, list[str]]:
    """Return the names of a small app's domains, templates and documents, by kind.

    Also those of its first `groups` and of its first active `actions`, up to `most` of each.
    """
    tables = {"domains": domains, "templates": templates}
    columns = [(sa.literal(kind), table) for kind, table in tables.items()]
    parts = [
        sa.select(kind.label("kind"), table.c.name).where(table.c.small_app_id == small_app_id)
        for kind, table in (*columns, (app_documents.c.kind, app_documents))
    ]
    if most:
        its_own = sa.select(groups.c.name).where(groups.c.small_app_id == small_app_id)
        for kind, query in (
            ("groups", its_own.order_by(groups.c.name).limit(most)),
            ("actions", _active_names(small_app_id, most)),
        ):
            first = query.subquery(f"first_{kind}")
            parts.append(sa.select(sa.literal(kind), first.c.name))
    found: dict[str, list[str]] = {kind: [] for kind in (*tables, *KINDS, "groups", "actions")}
    for row in connection.execute(sa.union_all(*parts).order_by("name")):
        found[row.kind].append(row.name)
    return found


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


def domains_of(connection: sa.Connection, small_app_id: int) -> list[dict[str, Any]]:
    """Return the small app's domains, by name, with what is staged and published of each."""
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
    return dicts(connection, query)


def _next(connection: sa.Connection, small_app_id: int) -> dict[str, Any] | None:
    """Return the clock action that is due next."""
    rows = closing_rows(connection, coming(connection, Scope(small_app_id), LAST, NEXT_READ))
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
        _count(operations, IS_RUNNING).label("running"),
        _count(users).label("users"),
        _count(groups).label("groups"),
    ).where(small_apps.c.id == small_app_id)
    row = dict(connection.execute(query).mappings().one())
    counts = {"total": row.pop("total"), "active": row.pop("active")}
    trust: Trust = row.pop("trust")
    trusted = {"trusted": trust.is_trusted, "queues": trust.queues, "tasks": trust.tasks}
    return {**row, **trusted, "actions": counts, "document": document_in(row["document"])}


def _count(table: sa.Table, *where: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    query = sa.select(sa.func.count()).select_from(table)
    return query.where(table.c.small_app_id == small_apps.c.id, *where).scalar_subquery()
