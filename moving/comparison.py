"""Compare when another scheduler runs an entry with when its action is due."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import zip_longest

from minutebook.beat.instants import COUNT, rounded_up
from models.action.plan import Plan
from models.action.schedule import NO_UID
from moving.celery_fires import changes_between
from moving.entries import Entry, Fires
from scheduler.occurrence import next_occurrences, occurrences_between

# An entry with more occurrences is compared around clock changes and at the beginning only: its
# days and times are the same sets by construction.
MOST_COMPARED = 400
BEGINNING = timedelta(days=2)
# How far from a clock change an entry that is due each day may be due by it.
AROUND = timedelta(hours=25)
# How far a schedule is searched for its next instants: first where it most likely has them.
WINDOWS = tuple(timedelta(hours=hours) for hours in (1, 24, 8 * 24, 61 * 24, 731 * 24))
MINUTE = timedelta(minutes=1)
NOTHING = timedelta(0)

Instants = tuple[datetime, ...]


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


@dataclass(frozen=True, slots=True)
class Upcoming:
    """The next five instants of an entry as an action, and in the other scheduler if known.

    `differing` are the first two that differ: the other's and the action's, None for a missing one.
    """

    here: Instants
    there: Instants | None = None
    differing: tuple[datetime | None, datetime | None] | None = None


def upcoming(entry: Entry, plan: Plan, now: datetime) -> Upcoming:
    """Return the next instants of an entry, from when its scheduler's state is known.

    Jitter is left out: the other's is drawn at random.
    """
    known = entry.known
    since = rounded_up(known.as_of) if known else now
    plan = plan.without_jitter()
    here = tuple(next_occurrences(plan, NO_UID, since, COUNT))
    if known:
        there = known.next_at
    elif entry.fires is not None:
        there = _first_of(entry.fires, plan, since)
        here = tuple(at for at in here if at <= since + WINDOWS[-1])
    else:
        return Upcoming(here)
    # Those of the sun lie at the nearest full minute.
    slack = MINUTE if isinstance(entry.when, dict) and "solar" in entry.when else NOTHING
    return Upcoming(here, there, _differing(there, here, slack))


def _first_of(fires: Fires, plan: Plan, since: datetime) -> Instants:
    found: Sequence[datetime] = ()
    for window in WINDOWS:
        found = [at for at in fires.between(since, since + window) if plan.policy.is_within(at)]
        if len(found) >= COUNT:
            break
    return tuple(found[:COUNT])


def _differing(
    there: Instants, here: Instants, slack: timedelta
) -> tuple[datetime | None, datetime | None] | None:
    for one, other in zip_longest(there, here):
        if one is None or other is None or abs(one - other) > slack:
            return one, other
    return None
