"""Count the outcomes of the occurrences of a downtime."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from models.operation import Cause, OperationState
from models.store.actions import missed
from models.tables import actions, missed_spans, operations, small_apps


@dataclass(frozen=True, slots=True)
class Span:
    """A downtime (since, until]; its outcomes were recorded at or after `recorded_from`."""

    since: datetime
    until: datetime
    recorded_from: datetime


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The number of operations of occurrences, and of missed occurrences by action."""

    sent: int
    missed: Counter[UUID]


def outcomes(connection: sa.Connection, span: Span) -> Outcomes:
    """Return the outcomes of a span's occurrences.

    A missed span that began before it, as after a daemon that stopped before it had caught up,
    counts from its start on.
    """
    its = _operations_of(span)
    was_missed = operations.c.state == OperationState.MISSED
    sent = connection.execute(sa.select(sa.func.count()).where(*its, sa.not_(was_missed)))
    # With an offset, SQLite finds them by recorded_at, not by the action that they are counted by.
    each = sa.select(operations.c.action_uid).where(*its, was_missed).offset(0).subquery()
    by_action = sa.select(each.c.action_uid, sa.func.count()).group_by(each.c.action_uid)
    singly = connection.execute(by_action)
    missed_ones: Counter[UUID] = Counter({row[0]: row[1] for row in singly})
    for one in missed.each(connection, *_spans_of(span)):
        missed_ones[one["action_uid"]] += missed.count(connection, one, span.since)
    return Outcomes(sent.scalar_one(), missed_ones)


def names_of(connection: sa.Connection, uids: Collection[UUID]) -> dict[UUID, str]:
    """Return the names of actions, deleted ones included."""
    query = sa.select(actions.c.uid, actions.c.name).where(actions.c.uid.in_(uids))
    return {row.uid: row.name for row in connection.execute(query)}


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
