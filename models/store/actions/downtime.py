"""The last downtime, and the outcomes of its occurrences."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.operation import Cause, OperationState
from models.store import key_values
from models.store.actions import missed
from models.stored import instant_in
from models.tables import actions, missed_spans, operations, small_apps
from models.values import format_instant

MOST_NAMED = 5


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


def last_downtime(
    connection: sa.Connection, ended_after: datetime | None = None
) -> dict[str, Any] | None:
    """Return the last downtime and the outcomes of its occurrences as JSON, or None.

    A downtime that ended at or before `ended_after` is ignored.
    """
    span = stored_span(connection)
    if span is None or (ended_after is not None and span.until <= ended_after):
        return None
    found = outcomes(connection, span)
    most = sorted(found.missed.items(), key=lambda one: (-one[1], one[0]))[:MOST_NAMED]
    names = names_of(connection, [uid for uid, _ in most])
    missed = found.missed.total()
    return {
        "since": format_instant(span.since),
        "until": format_instant(span.until),
        "occurrences": found.sent + missed,
        "sent": found.sent,
        "missed": missed,
        "actions": sum(count > 0 for count in found.missed.values()),
        "most_missed": [{"name": names[uid], "missed": count} for uid, count in most if count],
    }


def stored_span(connection: sa.Connection) -> Span | None:
    """Return the last downtime; None if there was none."""
    fact = key_values.json_value(connection, key_values.DOWNTIME)
    since, until = (instant_in(fact.get(key)) for key in ("since", "until"))
    recorded_from = instant_in(fact.get("recorded_from"))
    if since is None or until is None or recorded_from is None:
        return None
    return Span(since, until, recorded_from)


def in_words(found: dict[str, Any]) -> str:
    """Return a downtime as one line, without the word itself."""
    counts = f"{found['occurrences']} occurrences, {found['sent']} sent, {found['missed']} missed"
    names = ", ".join(f'"{one["name"]}" {one["missed"]}' for one in found["most_missed"])
    return f"{found['since']} to {found['until']}: {counts}{': ' + names if names else ''}"


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
