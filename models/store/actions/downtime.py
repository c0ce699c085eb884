"""Count the outcomes of the occurrences of a downtime."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.operation import Cause, OperationState
from models.tables import actions, missed_spans, operations, small_apps


@dataclass(frozen=True, slots=True)
class Span:
    """A downtime (since, until]; its outcomes were recorded at or after `recorded_from`."""

    since: datetime
    until: datetime
    recorded_from: datetime


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The number of occurrences, of missed ones, and the actions that missed most."""

    occurrences: int
    missed: int
    most_missed: tuple[tuple[UUID, int], ...]


def outcomes(connection: sa.Connection, span: Span, most: int) -> Outcomes:
    """Return the outcomes of a span's occurrences, with up to `most` actions that missed most.

    Missed spans that began before it do not count; see `straddling`.
    """
    its = _operations_of(span)
    was_missed = operations.c.state == OperationState.MISSED
    rows = sa.select(
        sa.func.count(), sa.func.coalesce(sa.func.sum(sa.case((was_missed, 1), else_=0)), 0)
    )
    recorded, missed = connection.execute(rows.where(*its)).one()
    inside = (*_spans_of(span), missed_spans.c.first_at > span.since)
    total = sa.select(sa.func.coalesce(sa.func.sum(missed_spans.c["count"]), 0))
    in_spans = int(connection.execute(total.where(*inside)).scalar_one())
    each = sa.union_all(
        sa.select(operations.c.action_uid, sa.literal(1).label("missed")).where(*its, was_missed),
        sa.select(missed_spans.c.action_uid, missed_spans.c["count"]).where(*inside),
    ).subquery()
    count = sa.func.sum(each.c.missed)
    by_action = sa.select(each.c.action_uid, count).group_by(each.c.action_uid)
    found = connection.execute(by_action.order_by(count.desc(), each.c.action_uid).limit(most))
    most_missed = tuple((uid, int(count)) for uid, count in found)
    return Outcomes(recorded + in_spans, int(missed) + in_spans, most_missed)


def names_of(connection: sa.Connection, uids: Collection[UUID]) -> dict[UUID, str]:
    """Return the names of actions, deleted ones included."""
    query = sa.select(actions.c.uid, actions.c.name).where(actions.c.uid.in_(uids))
    return {row.uid: row.name for row in connection.execute(query)}


def straddling(connection: sa.Connection, span: Span) -> list[sa.Row[Any]]:
    """Return the missed spans that began before a span and end in it.

    They exist if a daemon stopped before it had caught up.
    """
    query = sa.select(missed_spans).where(*_spans_of(span), missed_spans.c.first_at <= span.since)
    return list(connection.execute(query))


def _operations_of(span: Span) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        # With all app ids, the index on recorded_at is used.
        operations.c.small_app_id.in_(sa.select(small_apps.c.id)),
        operations.c.recorded_at >= span.recorded_from,
        operations.c.occurrence_at > span.since,
        operations.c.occurrence_at <= span.until,
        operations.c.cause != Cause.MANUAL,
    )


def _spans_of(span: Span) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        missed_spans.c.recorded_at >= span.recorded_from,
        missed_spans.c.last_at > span.since,
        missed_spans.c.last_at <= span.until,
    )
