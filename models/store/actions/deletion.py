"""Delete actions softly."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.sql import in_many
from models.store.conditions import of_app
from models.tables import action_cursor, actions, revisions


def mark_deleted(connection: sa.Connection, uids: Sequence[UUID], now: datetime) -> None:
    """Delete actions softly: their names become free, their history stays."""
    connection.execute(
        sa.update(actions)
        .where(in_many(connection, actions.c.uid, uids))
        .values(deleted_at=now, updated_at=now, event=None)
    )
    connection.execute(
        sa.update(action_cursor)
        .where(in_many(connection, action_cursor.c.action_uid, uids))
        .values(next_occurrence_at=None, watermark=now)
    )
    newest = sa.select(actions.c.revision).where(actions.c.uid == revisions.c.action_uid)
    connection.execute(
        sa.update(revisions)
        .where(in_many(connection, revisions.c.action_uid, uids))
        .where(revisions.c.number == newest.scalar_subquery(), revisions.c.ended_at.is_(None))
        .values(ended_at=now, end_reason="deleted")
    )


def owned_beside(
    connection: sa.Connection, small_app_id: int, owner: str, names: Collection[str]
) -> list[sa.Row[Any]]:
    """Return uid, name and revision of an owner's actions in the app, except those in `names`."""
    query = sa.select(actions.c.uid, actions.c.name, actions.c.revision).where(
        of_app(small_app_id), actions.c.owner == owner
    )
    rows: Sequence[Any] = connection.execute(query.order_by(actions.c.name)).all()
    return [row for row in rows if row.name not in names]


def of_owner(
    connection: sa.Connection, small_app_id: int, owner: str | None, limit: int
) -> list[UUID]:
    """Return the uids of up to `limit` actions of a small app, or of one owner in it, by uid."""
    query = sa.select(actions.c.uid).where(of_app(small_app_id))
    if owner is not None:
        query = query.where(actions.c.owner == owner)
    return list(connection.execute(query.order_by(actions.c.uid).limit(limit)).scalars())


def existing(connection: sa.Connection, uids: Sequence[UUID]) -> list[UUID]:
    """Return those of `uids` that are not deleted, by uid."""
    its = (in_many(connection, actions.c.uid, uids), actions.c.deleted_at.is_(None))
    return list(
        connection.execute(sa.select(actions.c.uid).where(*its).order_by(actions.c.uid)).scalars()
    )
