"""Spans of missed occurrences that have no rows of their own."""

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
    """Return an action's spans that meet [first, last]."""
    query = (
        sa.select(missed_spans)
        .where(missed_spans.c.action_uid == uid)
        .where(missed_spans.c.last_at >= first, missed_spans.c.first_at <= last)
    )
    return connection.execute(query.order_by(missed_spans.c.last_at)).all()


def plan_of(connection: sa.Connection, span: sa.Row[Any]) -> Plan | None:
    """Return the plan that a span was decided by; None if somebody broke it by hand."""
    its = (revisions.c.action_uid == span.action_uid, revisions.c.number == span.revision)
    plan = connection.execute(sa.select(revisions.c.plan).where(*its)).scalar_one_or_none()
    return plan if isinstance(plan, Plan) else None


def shrink(connection: sa.Connection, id: int, count: int, first: datetime, last: datetime) -> None:
    """Let a span say that so many are left of it, from `first` to `last`; none: it goes."""
    its = missed_spans.c.id == id
    if count <= 0:
        connection.execute(sa.delete(missed_spans).where(its))
        return
    left = {"count": count, "first_at": first, "last_at": last}
    connection.execute(sa.update(missed_spans).where(its).values(left))


def ids_in(connection: sa.Connection, ids: Sequence[UUID]) -> set[UUID]:
    """Return which of these operations there are."""
    query = sa.select(operations.c.id).where(operations.c.id.in_(ids))
    return set(connection.execute(query).scalars())
