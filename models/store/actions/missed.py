"""Read what was missed: operations in that state, and spans of older occurrences that have none.

A span is stored as its ends, the revision that missed it, the reason, and its count by the tick. If
a backfill runs some of them later, the span stays as it is.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import sqlalchemy as sa

from models.bulk_sql import given
from models.fingerprint import operation_id
from models.operation import OperationState
from models.tables import missed_spans, operations, revisions

if TYPE_CHECKING:
    from models.action.plan import Plan

SECOND = timedelta(seconds=1)
# How many spans hold. As a float: a hand may have written more than an integer holds.
TIMES = sa.func.sum(sa.cast(missed_spans.c["count"], sa.Float))


def with_plans() -> sa.Select[Any]:
    """Return the query of missed spans, each with the plan of its revision."""
    its = missed_spans.c
    of_revision = (revisions.c.action_uid == its.action_uid, revisions.c.number == its.revision)
    return sa.select(missed_spans, revisions.c.plan).outerjoin(revisions, sa.and_(*of_revision))


def recorded_in(
    connection: sa.Connection, spans: Sequence[Mapping[Any, Any]]
) -> list[dict[UUID, datetime]]:
    """Return each span's operations by id, with their occurrences.

    They exist only after a clock went back.
    """
    found: dict[tuple[Any, ...], dict[UUID, datetime]] = defaultdict(dict)
    if spans:
        asked = [{name: span[name] for name in _ENDS} for span in spans]
        for id, at, *ends in connection.execute(_RECORDED_IN, {"given": asked}):
            found[tuple(ends)][id] = at
    return [found[tuple(span[name] for name in _ENDS)] for span in spans]


_ENDS = ("action_uid", "first_at", "last_at")
_given = given(missed_spans, *_ENDS)
_RECORDED_IN = sa.select(operations.c.id, operations.c.occurrence_at, *_given.c).join(
    _given,
    sa.and_(
        operations.c.action_uid == _given.c.action_uid,
        operations.c.occurrence_at.between(_given.c.first_at, _given.c.last_at),
    ),
)


class Missed(NamedTuple):
    """How many occurrences were missed, the first and the last."""

    times: int
    first_at: datetime
    last_at: datetime


def total(parts: Iterable[Missed]) -> Missed:
    """Return several as one."""
    counts, firsts, lasts = zip(*parts, strict=True)
    return Missed(sum(counts), min(firsts), max(lasts))


def by_action(
    connection: sa.Connection,
    of_operations: Sequence[sa.ColumnElement[bool]],
    of_spans: Sequence[sa.ColumnElement[bool]],
) -> dict[UUID, Missed]:
    """Return what each action missed, by these conditions of its operations and of its spans."""
    its, spans = operations.c, missed_spans.c
    was_missed = its.state == OperationState.MISSED
    # With an offset, SQLite finds them by recorded_at, not by the action that they are counted by.
    each = sa.select(its.action_uid, its.occurrence_at).where(was_missed, *of_operations).offset(0)
    at = each.subquery().c
    queries = (
        _counted(at.action_uid, sa.func.count(), at.occurrence_at, at.occurrence_at),
        _counted(spans.action_uid, TIMES, spans.first_at, spans.last_at).where(*of_spans),
    )
    parts: dict[UUID, list[Missed]] = {}
    for query in queries:
        for uid, times, *ends in connection.execute(query):
            parts.setdefault(uid, []).append(Missed(int(times), *ends))
    return {uid: total(its_parts) for uid, its_parts in parts.items()}


def _counted(
    uid: sa.ColumnElement[UUID],
    times: sa.ColumnElement[Any],
    first_at: sa.ColumnElement[datetime],
    last_at: sa.ColumnElement[datetime],
) -> sa.Select[Any]:
    ends = (sa.func.min(first_at), sa.func.max(last_at))
    return sa.select(uid, times, *ends).group_by(uid)


def due_among(plan: "Plan", uid: UUID, recorded: Mapping[UUID, datetime]) -> int:
    """Return how many of these operations are of occurrences of `plan`.

    Manual runs and occurrences of other revisions do not count: their ids or instants differ.
    """
    schedule = plan.schedule(uid)
    return sum(
        id == operation_id(uid, at) and schedule.count(at - SECOND, at) == 1
        for id, at in recorded.items()
    )
