"""Compare a simulation with expectations: pure."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from uuid import UUID

from models.values import format_instant
from scheduler.occurrence import occurrences_between
from scheduler.simulate import MISSED, SECOND, SENT, Fate, busiest
from scheduler.simulate.expectations import ExpectationModel

MOST_NAMED = 5


def differences(expected: ExpectationModel, fates: Sequence[Fate]) -> list[str]:
    """Return one sentence for each difference between an expectation and a simulation."""
    concerned = [one for one in fates if _is_concerned(expected, one)]
    return [
        *_sent(expected, concerned),
        *_missed(expected, concerned),
        *_busiest(expected, concerned),
    ]


def _is_concerned(expected: ExpectationModel, fate: Fate) -> bool:
    return (
        (expected.action is None or fate.action.name == expected.action)
        and (expected.from_ is None or expected.from_ <= fate.last_at)
        and (expected.to is None or fate.first_at < expected.to)
    )


def _sent(expected: ExpectationModel, fates: Sequence[Fate]) -> Iterator[str]:
    sent = sorted(one.first_at for one in fates if one.fate == SENT)
    if isinstance(expected.sent, int) and len(sent) != expected.sent:
        yield f"expected {expected.sent} sent, got {len(sent)}"
    elif isinstance(expected.sent, tuple):
        wanted, found = set(expected.sent), set(sent)
        yield from _named(sorted(wanted - found), "expected, but not sent")
        yield from _named(sorted(found - wanted), "sent, but not expected")


def _named(instants: Sequence[datetime], text: str) -> Iterator[str]:
    if instants:
        shown = ", ".join(format_instant(at) for at in instants[:MOST_NAMED])
        more = len(instants) - MOST_NAMED
        yield f"{text}: {shown}{f' and {more} more' if more > 0 else ''}"


def _missed(expected: ExpectationModel, fates: Sequence[Fate]) -> Iterator[str]:
    sent = {(one.action.uid, one.first_at) for one in fates if one.fate == SENT}
    missed = sum(_count(expected, one, sent) for one in fates if one.fate == MISSED)
    if expected.missed is not None and missed != expected.missed:
        yield f"expected {expected.missed} missed, got {missed}"


def _count(expected: ExpectationModel, fate: Fate, sent: Collection[tuple[UUID, datetime]]) -> int:
    """Return how many of a fate's occurrences lie in [from, to)."""
    first = max(fate.first_at, expected.from_ or fate.first_at)
    last = fate.last_at if expected.to is None else min(fate.last_at, expected.to - SECOND)
    if (first, last) == (fate.first_at, fate.last_at):
        return fate.count
    action = fate.action
    inside = occurrences_between(action.plan, action.uid, first - SECOND, last)
    return sum((action.uid, at) not in sent for at in inside)


def _busiest(expected: ExpectationModel, fates: Sequence[Fate]) -> Iterator[str]:
    if expected.busiest_minute is None:
        return
    for at, count in busiest(fates, 1):
        if count > expected.busiest_minute:
            most = expected.busiest_minute
            yield f"expected at most {most} per minute, got {count} at {format_instant(at)}"
