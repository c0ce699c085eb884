"""Design and permission documents of small apps, in staging and production.

Null in staging means that the next publish removes the document from production. A row that is
null in both is removed; it stays until the next save, so that its publish can still report it.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from data.small_app.staged import KINDS
from data.store.publishing import publish as move
from data.store.tables import app_documents
from runtime.database import read_stored


def publish(
    connection: sa.Connection,
    small_app_id: int,
    kind: str,
    names: Sequence[str],
    operation_id: UUID,
) -> None:
    """Move production to staging for the documents `names` of a kind, including removals.

    Unchanged documents are left alone.
    """
    known = app_documents.c
    its = (known.small_app_id == small_app_id, known.kind == kind, known.name.in_(names))
    move(connection, known.production, known.staging, operation_id, *its)


def published_by(
    connection: sa.Connection, small_app_id: int, operation_id: UUID
) -> Sequence[sa.Row[Any]]:
    """Return kind, name and `is_removed` of the documents last published by this operation."""
    known = app_documents.c
    is_removed = known.production.is_(None).label("is_removed")
    query = sa.select(known.kind, known.name, is_removed).order_by(known.kind, known.name)
    its = (known.small_app_id == small_app_id, known.published_by == operation_id)
    return connection.execute(query.where(*its)).all()


def published_at(connection: sa.Connection, small_app_id: int) -> datetime | None:
    """Return the instant of the small app's last publish of a document; None for never."""
    newest = sa.select(sa.func.max(app_documents.c.published_at))
    of_app = newest.where(app_documents.c.small_app_id == small_app_id)
    found: datetime | None = connection.execute(of_app).scalar_one()
    return found


def shown(connection: sa.Connection, small_app_id: int, place: str) -> dict[str, dict[str, Any]]:
    """Return the documents of each kind by name in `place` (staging or production)."""
    text = app_documents.c[place]
    rows = connection.execute(
        sa.select(app_documents.c.kind, app_documents.c.name, text.label("text"))
        .where(app_documents.c.small_app_id == small_app_id, text.is_not(None))
        .order_by(app_documents.c.name)
    ).all()
    return {
        kind: {row.name: read_stored(row.text) for row in rows if row.kind == kind}
        for kind in KINDS
    }
