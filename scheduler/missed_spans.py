"""Shrink spans of missed occurrences when some are recorded or are no longer due."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import Plan
from models.store import clock_steps
from models.store.actions import missed
from scheduler.fingerprint import operation_id
from scheduler.occurrence import last_occurrence, next_occurrences

SECOND = timedelta(seconds=1)
AT_ONCE = 500


def take_out(connection: sa.Connection, uid: UUID, recorded: Sequence[datetime]) -> int:
    """Remove just recorded occurrences, ascending, from their spans; return how many.

    Each occurrence has one outcome: a span counts, and both its ends are, occurrences without an
    operation. The caller holds the action's cursor.
    """
    if not recorded:
        return 0
    taken = 0
    for span in missed.spans_in(connection, uid, recorded[0], recorded[-1]):
        plan = missed.plan_of(connection, uid, span.revision)
        if plan is None:
            # It is unknown what the span counted.
            continue
        inside = [at for at in recorded if span.first_at <= at <= span.last_at]
        counted = [at for at in inside if next_occurrences(plan, uid, at - SECOND, 1) == [at]]
        if counted:
            left = span._mapping["count"] - len(counted)
            first, last = rowless_ends(connection, uid, plan, (span.first_at, span.last_at))
            missed.shrink(connection, span.id, left if first <= last else 0, first, last)
            taken += len(counted)
    return taken


def wind_back(connection: sa.Connection, now: datetime, uid: UUID | None = None) -> int:
    """Reset decisions and changes after `now` to `now`, for one action or all; return how many.

    A span across `now` is decided again as a whole. If it belongs to an old revision, it is cut at
    `now` instead: its earlier part was missed.
    """
    again: dict[UUID, datetime] = {}
    for span in clock_steps.straddling(connection, now, uid):
        if span.revision != span.newest_revision:
            _cut(connection, span, now)
        else:
            first = span.first_at - SECOND
            again[span.action_uid] = min(first, again.get(span.action_uid, first))
    moved = clock_steps.wind_back(connection, now, uid)
    for one, since in again.items():
        clock_steps.decide_again(connection, one, since)
    return moved


def _cut(connection: sa.Connection, span: sa.Row[Any], now: datetime) -> None:
    uid = span.action_uid
    plan = missed.plan_of(connection, uid, span.revision)
    if plan is None or plan.on_event is not None:
        # It is unknown what the span counted, or it is decided again with the events.
        return
    ends = span.first_at, now.replace(microsecond=0)
    first, last = rowless_ends(connection, uid, plan, ends)
    left = rowless(connection, uid, plan, (first - SECOND, last)) if first <= last else 0
    missed.shrink(connection, span.id, left, first, last)


def rowless(
    connection: sa.Connection, uid: UUID, plan: Plan, range_: tuple[datetime, datetime]
) -> int:
    """Return how many occurrences in (since, until] have no operation."""
    since, until = range_
    count = 0
    while some := [at for at in next_occurrences(plan, uid, since, AT_ONCE) if at <= until]:
        count += len(some) - len(missed.ids_in(connection, [operation_id(uid, at) for at in some]))
        since = some[-1]
    return count


def rowless_ends(
    connection: sa.Connection, uid: UUID, plan: Plan, ends: tuple[datetime, datetime]
) -> tuple[datetime, datetime]:
    """Return the first and the last occurrence in [first, last] that have no operation.

    If all have one, the first lies after the last.
    """
    first, last = ends

    def forth() -> Iterator[datetime]:
        at: datetime | None = first
        while at is not None and at <= last:
            yield at
            at = next(iter(next_occurrences(plan, uid, at, 1)), None)

    def back() -> Iterator[datetime]:
        at: datetime | None = last
        while at is not None and at >= first:
            yield at
            at = last_occurrence(plan, uid, at - SECOND)

    new_first = _without_operation(connection, uid, forth())
    if new_first is None:
        return last + SECOND, last
    return new_first, _without_operation(connection, uid, back()) or new_first


def _without_operation(
    connection: sa.Connection, uid: UUID, occurrences: Iterator[datetime]
) -> datetime | None:
    while some := list(islice(occurrences, AT_ONCE)):
        known = missed.ids_in(connection, [operation_id(uid, at) for at in some])
        for at in some:
            if operation_id(uid, at) not in known:
                return at
    return None
