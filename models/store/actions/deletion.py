"""Delete actions softly."""

from collections.abc import Sequence
from datetime import datetime
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


def owned(
    connection: sa.Connection, small_app_id: int, owner: str | None = None
) -> dict[UUID, str]:
    """Return the names of the actions of a small app, or of one owner in it, by uid."""
    query = sa.select(actions.c.uid, actions.c.name).where(of_app(small_app_id))
    if owner is not None:
        query = query.where(actions.c.owner == owner)
    return {row.uid: row.name for row in connection.execute(query.order_by(actions.c.uid))}
