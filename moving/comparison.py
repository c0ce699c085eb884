"""Compare when another scheduler runs an entry with when its action is due."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from models.action.plan import Plan
from models.action.schedule import NO_UID
from moving.celery_fires import changes_between
from moving.entries import Fires
from scheduler.occurrence import occurrences_between

# An entry with more occurrences is compared around clock changes and at the beginning only: its
# days and times are the same sets by construction.
MOST_COMPARED = 400
BEGINNING = timedelta(days=2)
# How far from a clock change an entry that is due each day may be due by it.
AROUND = timedelta(hours=25)


@dataclass(frozen=True, slots=True)
class Difference:
    """How many instants of two schedules differ, of how many of the action, and which is the first.

    `is_here`: the first one is the action's, and not the other scheduler's.
    """

    count: int
    total: int
    first_at: datetime | None = None
    is_here: bool = False


def difference(plan: Plan, fires: Fires, since: datetime, until: datetime) -> Difference:
    """Return how an action's occurrences in (since, until] differ from the other's instants.

    Jitter is left out: the other's is drawn at random.
    """
    plan = replace(plan.without_jitter(), active=True)
    total = sum(one.count(since, until) for one in plan.schedules(NO_UID))
    spans = [(since, until)] if total <= MOST_COMPARED else list(_spans(plan, since, until))
    differing: list[tuple[datetime, bool]] = []
    for first, last in spans:
        here = set(occurrences_between(plan, NO_UID, first, last))
        there = {at for at in fires.between(first, last) if plan.policy.is_within(at)}
        differing += [(at, at in here) for at in here ^ there]
    if not differing:
        return Difference(0, total)
    first_at, is_here = min(differing)
    return Difference(len(differing), total, first_at, is_here)


def _spans(plan: Plan, since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield spans in (since, until] that do not overlap: the beginning, and each clock change."""
    end = min(since + BEGINNING, until)
    yield since, end
    zones = {one.zone for one in plan.rules if one.zone is not None}
    for at in changes_between(zones, end, until):
        first, last = max(at - AROUND, end), min(at + AROUND, until)
        if first < last:
            yield first, last
            end = last
