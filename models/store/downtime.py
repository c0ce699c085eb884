"""What became of the occurrences of a time in which no daemon ticked: counted in the tables."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from models.operation import OperationState
from models.tables import actions, missed_spans, operations, revisions, small_apps

# What the triggerer of an operation begins with that no occurrence of its action caused.
MANUAL = "Manual run"


@dataclass(frozen=True, slots=True)
class Span:
    """A time without a tick, (since, until]; what came of it was recorded at `recorded_from` on."""

    since: datetime
    until: datetime
    recorded_from: datetime


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How many occurrences there were, how many of them were missed, and of which actions most."""

    occurrences: int
    missed: int
    most_missed: tuple[tuple[str, int], ...]


def outcomes(connection: sa.Connection, span: Span, most: int) -> Outcomes:
    """Return what became of the occurrences in a span; names of the `most` most missed actions.

    Missed spans that began before it are not counted: see `straddling`.
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
    named = sa.select(actions.c.name, count).join(each, each.c.action_uid == actions.c.uid)
    most_first = named.group_by(actions.c.uid, actions.c.name).order_by(
        count.desc(), actions.c.name
    )
    found = connection.execute(most_first.limit(most)).all()
    names = tuple((name, int(count)) for name, count in found)
    return Outcomes(recorded + in_spans, int(missed) + in_spans, names)


def straddling(connection: sa.Connection, span: Span) -> list[sa.Row[Any]]:
    """Return the missed spans that began before a span and end in it, with name and plan.

    There are some when a daemon stopped before it had caught up.
    """
    its_revision = (revisions.c.action_uid == missed_spans.c.action_uid) & (
        revisions.c.number == missed_spans.c.revision
    )
    query = (
        sa.select(missed_spans, actions.c.name, revisions.c.plan)
        .join(revisions, its_revision)
        .join(actions, actions.c.uid == missed_spans.c.action_uid)
        .where(*_spans_of(span), missed_spans.c.first_at <= span.since)
    )
    return list(connection.execute(query))


def _operations_of(span: Span) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        # Every app by its id: so the index by what was recorded lately is used.
        operations.c.small_app_id.in_(sa.select(small_apps.c.id)),
        operations.c.recorded_at >= span.recorded_from,
        operations.c.occurrence_at > span.since,
        operations.c.occurrence_at <= span.until,
        sa.not_(operations.c.triggerer.startswith(MANUAL)),
    )


def _spans_of(span: Span) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        missed_spans.c.recorded_at >= span.recorded_from,
        missed_spans.c.last_at > span.since,
        missed_spans.c.last_at <= span.until,
    )
