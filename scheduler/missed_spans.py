"""What is left of a span of missed occurrences when some of them are recorded after all."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import Plan
from models.store.actions import missed
from scheduler.fingerprint import operation_id
from scheduler.occurrence import last_occurrence, next_occurrences

SECOND = timedelta(seconds=1)
AT_ONCE = 100


def take_out(connection: sa.Connection, uid: UUID, recorded: Sequence[datetime]) -> int:
    """Take occurrences that were recorded just now, ascending, out of their spans; return how many.

    So each occurrence keeps one outcome: a span counts those in it that have no operation, and both
    its ends are such. The caller holds the action's cursor.
    """
    if not recorded:
        return 0
    taken = 0
    for span in missed.spans_in(connection, uid, recorded[0], recorded[-1]):
        plan = missed.plan_of(connection, span)
        if plan is None:
            # Nobody can say what the span counted.
            continue
        inside = [at for at in recorded if span.first_at <= at <= span.last_at]
        counted = [at for at in inside if next_occurrences(plan, uid, at - SECOND, 1) == [at]]
        if counted:
            left = span._mapping["count"] - len(counted)
            first, last = rowless_ends(connection, uid, plan, (span.first_at, span.last_at))
            missed.shrink(connection, span.id, left if first <= last else 0, first, last)
            taken += len(counted)
    return taken


def rowless_ends(
    connection: sa.Connection, uid: UUID, plan: Plan, ends: tuple[datetime, datetime]
) -> tuple[datetime, datetime]:
    """Return the first and the last occurrence in [first, last] that have no operation.

    The first lies after the last when each has one.
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
