"""Read spans of missed occurrences, which have no operations, and count them.

A span is stored as its ends, the revision that missed it, and the reason. Its count is computed
when it is read: the occurrences of that revision from end to end that have no operation. If a
backfill runs some of them later, the span stays as it is.

Spans of events keep the count of the tick, for nothing else knows who was due: users who are seen
again move their occurrences. So do spans of rules with calendars, which may have changed. That
count also stands in for a plan that cannot be read.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import sqlalchemy as sa

from models.bulk_sql import given
from models.fingerprint import operation_id
from models.operation import OperationState
from models.store.conditions import NOT_DELETED
from models.tables import actions, missed_spans, operations, revisions

if TYPE_CHECKING:
    from models.action.plan import Plan

SECOND = timedelta(seconds=1)
# A long downtime of many actions leaves many.
IN_MEMORY = 1_000
_OF_ACTION = (
    actions.c.small_app_id,
    actions.c.name.label("action_name"),
    actions.c.revision.label("newest_revision"),
    # Ticks decide neither a deleted nor a quarantined action.
    sa.and_(NOT_DELETED, actions.c.quarantined.is_(None)).label("is_decided"),
)
# Counted in the statement, by the index on an action's occurrences: nearly always 0.
_RECORDED = (
    sa.select(sa.func.count())
    .where(
        operations.c.action_uid == missed_spans.c.action_uid,
        operations.c.occurrence_at >= missed_spans.c.first_at,
        operations.c.occurrence_at <= missed_spans.c.last_at,
        operations.c.subject.is_(None),
    )
    .scalar_subquery()
    .label("recorded")
)


def spans(
    connection: sa.Connection, *where: sa.ColumnElement[bool], newest: int | None = None
) -> Sequence[sa.RowMapping]:
    """Return missed spans, the newest first, in the form that `count` takes."""
    ordered = query(*where).order_by(missed_spans.c.id.desc()).limit(newest)
    return connection.execute(ordered).mappings().all()


def spans_of(connection: sa.Connection, *where: sa.ColumnElement[bool]) -> Iterator[sa.RowMapping]:
    """Yield missed spans, in no order, in the form that `count` takes."""
    options = {"yield_per": IN_MEMORY}
    yield from connection.execute(query(*where), execution_options=options).mappings()


def query(*where: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Return the query of missed spans.

    Each has the plan of its revision, and of its action the small app, the name, the newest
    revision and whether ticks decide it.
    """
    its_revision = sa.and_(
        revisions.c.action_uid == missed_spans.c.action_uid,
        revisions.c.number == missed_spans.c.revision,
    )
    return (
        sa.select(missed_spans, *_OF_ACTION, revisions.c.plan, _RECORDED)
        # Each has its action. An inner join lets SQLite read all actions first.
        .outerjoin(actions, actions.c.uid == missed_spans.c.action_uid)
        .outerjoin(revisions, its_revision)
        .where(*where)
    )


def count(connection: sa.Connection, span: sa.RowMapping, since: datetime | None = None) -> int:
    """Return how many occurrences of a span have no operation, or how many of those after `since`.

    It is unknown how many events lie after `since`: then none count. So with calendars.
    """
    from models.action.plan import Plan

    plan, first, last = span["plan"], span["first_at"], span["last_at"]
    begins_before = since is not None and first <= since
    if not isinstance(plan, Plan) or plan.on_event is not None or plan.names_calendars:
        return 0 if begins_before else span["count"]
    begin = since if since is not None and begins_before else first - SECOND
    uid = span["action_uid"]
    due = plan.schedule(uid).count(begin, last)
    if not span["recorded"]:
        return due
    (recorded,) = recorded_in(connection, [span])
    return due - due_among(plan, uid, {id: at for id, at in recorded.items() if at > begin})


def recorded_in(
    connection: sa.Connection, spans: Sequence[Mapping[Any, Any]]
) -> list[dict[UUID, datetime]]:
    """Return each span's operations by id, with their occurrences.

    They exist only after a clock went back, or if a backfill ran.
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
    since: datetime | None = None,
) -> dict[UUID, Missed]:
    """Return what each action missed, by these conditions of its operations and of its spans.

    Of a span, only what lies after `since` counts.
    """
    its, was_missed = operations.c, operations.c.state == OperationState.MISSED
    # With an offset, SQLite finds them by recorded_at, not by the action that they are counted by.
    each = sa.select(its.action_uid, its.occurrence_at).where(was_missed, *of_operations).offset(0)
    at = each.subquery().c
    ends = (sa.func.min(at.occurrence_at), sa.func.max(at.occurrence_at))
    singly = sa.select(at.action_uid, sa.func.count(), *ends).group_by(at.action_uid)
    parts = {uid: [Missed(*one)] for uid, *one in connection.execute(singly)}
    for span in spans_of(connection, *of_spans):
        one = Missed(count(connection, span, since), span["first_at"], span["last_at"])
        if one.times:
            parts.setdefault(span["action_uid"], []).append(one)
    return {uid: total(its_parts) for uid, its_parts in parts.items()}


def due_among(plan: "Plan", uid: UUID, recorded: Mapping[UUID, datetime]) -> int:
    """Return how many of these operations are of occurrences of `plan`.

    Manual runs and occurrences of other revisions do not count: their ids or instants differ.
    """
    schedule = plan.schedule(uid)
    return sum(
        id == operation_id(uid, at) and schedule.count(at - SECOND, at) == 1
        for id, at in recorded.items()
    )
