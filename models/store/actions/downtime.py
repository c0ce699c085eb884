"""The last downtime, and the outcomes of its occurrences."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.operation import TICKED, OperationState
from models.store import key_values
from models.store.actions import missed
from models.store.actions.missed import Missed
from models.stored import instant_in
from models.tables import actions, missed_spans, operations
from models.values import format_instant
from models.values.durations import lasting

MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Span:
    """A downtime (since, until], in which no daemon ticked.

    Its outcomes were recorded at or after `recorded_from`.
    """

    since: datetime
    until: datetime
    recorded_from: datetime

    def covers(self, first_at: datetime, last_at: datetime) -> bool:
        """Return whether occurrences between these instants were due in it."""
        return self.since < first_at and last_at <= self.until

    @property
    def begin(self) -> str:
        """The beginning of its text, which is the same as long as it lasts."""
        return f"no daemon ticked from {format_instant(self.since)}"

    @property
    def text(self) -> str:
        """It as the cause of what was missed."""
        return f"{self.begin} to {format_instant(self.until)} ({lasting(self.until - self.since)})"


def last_downtime(
    connection: sa.Connection, ended_after: datetime | None = None
) -> dict[str, Any] | None:
    """Return the last downtime and the outcomes of its occurrences as JSON, or None.

    A downtime that ended at or before `ended_after` is ignored.
    """
    span = stored_span(connection)
    if span is None or (ended_after is not None and span.until <= ended_after):
        return None
    its, of_spans = _operations_of(span), _spans_of(span)
    was_sent = sa.select(sa.func.count()).where(*its, operations.c.state != OperationState.MISSED)
    sent: int = connection.execute(was_sent).scalar_one()
    found = missed.by_action(connection, its, of_spans)
    count = sum(one.times for one in found.values())
    return {
        "since": format_instant(span.since),
        "until": format_instant(span.until),
        "occurrences": sent + count,
        "sent": sent,
        "missed": count,
        "actions": len(found),
        "most_missed": most_missed(connection, found),
    }


def most_missed(connection: sa.Connection, found: Mapping[UUID, Missed]) -> list[dict[str, object]]:
    """Return names and counts of the actions that missed most, deleted ones included."""
    most = sorted(found, key=lambda uid: (-found[uid].times, uid))[:MOST_NAMED]
    query = sa.select(actions.c.uid, actions.c.name).where(actions.c.uid.in_(most))
    names = {row.uid: row.name for row in connection.execute(query)}
    return [{"name": names.get(uid), "missed": found[uid].times} for uid in most]


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
        operations.c.recorded_at >= span.recorded_from,
        operations.c.occurrence_at > span.since,
        operations.c.occurrence_at <= span.until,
        operations.c.cause.in_(TICKED),
    )


def _spans_of(span: Span) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        missed_spans.c.recorded_at >= span.recorded_from,
        missed_spans.c.last_at > span.since,
        missed_spans.c.last_at <= span.until,
    )
