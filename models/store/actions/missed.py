"""Read and shrink spans of missed occurrences, which have no operations."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import Plan
from models.tables import missed_spans, operations, revisions


def spans_in(
    connection: sa.Connection, uid: UUID, first: datetime, last: datetime
) -> Sequence[sa.Row[Any]]:
    """Return an action's spans that overlap [first, last]."""
    query = (
        sa.select(missed_spans)
        .where(missed_spans.c.action_uid == uid)
        .where(missed_spans.c.last_at >= first, missed_spans.c.first_at <= last)
    )
    return connection.execute(query.order_by(missed_spans.c.last_at)).all()


def plan_of(connection: sa.Connection, uid: UUID, number: int) -> Plan | None:
    """Return the plan of an action's revision; None if it is unreadable."""
    its = (revisions.c.action_uid == uid, revisions.c.number == number)
    plan = connection.execute(sa.select(revisions.c.plan).where(*its)).scalar_one_or_none()
    return plan if isinstance(plan, Plan) else None


def shrink(connection: sa.Connection, id: int, count: int, first: datetime, last: datetime) -> None:
    """Set a span's count and ends; delete it if `count` is not positive."""
    its = missed_spans.c.id == id
    if count <= 0:
        connection.execute(sa.delete(missed_spans).where(its))
        return
    left = {"count": count, "first_at": first, "last_at": last}
    connection.execute(sa.update(missed_spans).where(its).values(left))


def ids_in(connection: sa.Connection, ids: Sequence[UUID]) -> set[UUID]:
    """Return the ids that exist."""
    query = sa.select(operations.c.id).where(operations.c.id.in_(ids))
    return set(connection.execute(query).scalars())
