"""Publishing: production becomes what is staged, for domains and for documents alike."""

from uuid import UUID

import sqlalchemy as sa

from models.sql import database_now


def publish(
    connection: sa.Connection,
    production: "sa.Column[object]",
    staging: "sa.Column[object]",
    operation_id: UUID,
    *which: sa.ColumnElement[bool],
) -> None:
    """Move `production` to `staging` in the rows that match `which`, and record the operation.

    Unchanged rows are left alone.
    """
    moved = sa.update(production.table).where(*which, production.is_distinct_from(staging))
    values = {production.name: staging, "published_at": database_now()}
    connection.execute(moved.values({**values, "published_by": operation_id}))
