"""What applying documents would do, before anybody does it: nothing is stored."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import Plan
from models.sql import read_clock
from models.store import actions
from scheduler.changes.change import Change, rows_named
from scheduler.changes.revisions import Revision, decided_since, was_edited
from scheduler.changes.validation import Author, Stored, contexts_of, revisions_of
from scheduler.fingerprint import str_to_uuid
from scheduler.occurrence import decide, next_occurrences, occurrences_between

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
SHOWN = 5
# Beyond so many the load is that of those that are due first.
MOST_ACTIONS = 10_000
MOST_OCCURRENCES = 1_000_000


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What applying one document would do to its action.

    `before` and `after` are the next occurrences by the old rule and by the new one. `sent` and
    `missed` are what the change decides by the old rule, up to now: the new one never runs the
    past. `number` is the revision that it would be; `uid` is None for a new action.
    """

    name: str
    uid: UUID | None
    change: Change
    number: int
    before: tuple[datetime, ...]
    after: tuple[datetime, ...]
    sent: tuple[datetime, ...]
    missed: int
    plan: Plan
    # An edit by plain SQL stands before it: that becomes a revision of its own first.
    is_edited: bool = False


@dataclass(frozen=True, slots=True)
class Load:
    """The minute of the next day that sends most, before and after; `is_whole` or of a part."""

    before: tuple[datetime, int] | None
    after: tuple[datetime, int] | None
    is_whole: bool


def plan_changes(
    connection: sa.Connection, documents: Sequence[object], author: Author
) -> list[PlannedChange]:
    """Return what `apply_all` would do now, one for each document.

    Raises InvalidDocument with all problems of all documents.
    """
    rows = rows_named(connection, documents, author, locks=False)
    now = read_clock(connection)
    revisions = revisions_of(documents, contexts_of(connection, rows, author, now), author)
    pairs = zip(rows, revisions, strict=True)
    return [_created(revision, now) if row is None else _changed(row, revision, now)
            for row, revision in pairs]  # fmt: skip


def load(connection: sa.Connection, planned: Iterable[PlannedChange], now: datetime) -> Load:
    """Return how the busiest minute of (now, now + 1 day] moves, over all small apps."""
    rows = actions.due_until(connection, now + DAY, MOST_ACTIONS + 1)
    is_whole = len(rows) <= MOST_ACTIONS
    plans = {row.action_uid: plan for row in rows if (plan := _readable(row.plan)) is not None}
    changed = {one.uid or _new_uid(one.name): one.plan for one in planned}
    left = MOST_OCCURRENCES
    same: Counter[datetime] = Counter()
    for uid in plans.keys() - changed.keys():
        if left <= 0:
            is_whole = False
            break
        found = _minutes(plans[uid], uid, now)
        same.update(found)
        left -= len(found)
    before = same + _counted({uid: plans[uid] for uid in changed.keys() & plans.keys()}, now)
    return Load(_most(before), _most(same + _counted(changed, now)), is_whole)


def _created(revision: Revision, now: datetime) -> PlannedChange:
    name = revision.columns["name"]
    after = _next(revision.plan, _new_uid(name), now)
    return PlannedChange(name, None, Change.CREATED, 1, (), after, (), 0, revision.plan)


def _changed(row: Stored, revision: Revision, now: datetime) -> PlannedChange:
    old = None if row.set_aside is not None else _readable(row.plan)
    uid, name = row.action_uid, revision.columns["name"]
    is_same = old is not None and revision.columns["document_hash"] == row.document_hash
    sent, missed = ((), 0) if is_same or old is None else _decided(row, old, now)
    return PlannedChange(
        name,
        uid,
        Change.UNCHANGED if is_same else Change.CHANGED,
        row.revision if is_same else row.revision + 1,
        () if old is None else _next(old, uid, now),
        _next(revision.plan, uid, now),
        sent,
        missed,
        revision.plan,
        is_edited=row.edited_at is not None and row.set_aside is None and was_edited(row),
    )


def _decided(row: Stored, plan: Plan, now: datetime) -> tuple[tuple[datetime, ...], int]:
    """Return what the old revision would send, and how many it would miss, up to `now`."""
    sent: list[datetime] = []
    missed, since = 0, decided_since(row, now)
    until = max(now, row.watermark)
    while since < until:
        decision = decide(plan, row.action_uid, since, until)
        sent += decision.due
        missed += len(decision.missed)
        missed += decision.missed_span.count if decision.missed_span else 0
        since = decision.watermark
    return tuple(sent), missed


def _next(plan: Plan, uid: UUID, now: datetime) -> tuple[datetime, ...]:
    return tuple(next_occurrences(plan, uid, now, SHOWN)) if plan.active else ()


def _new_uid(name: str) -> UUID:
    # The jitter of a new action is known once it has its uid.
    return str_to_uuid(f"foreseen | {name}")


def _readable(text: str) -> Plan | None:
    try:
        return Plan.from_json(text)
    except ValueError:
        return None


def _counted(plans: dict[UUID, Plan], now: datetime) -> Counter[datetime]:
    return Counter(minute for uid, plan in plans.items() for minute in _minutes(plan, uid, now))


def _minutes(plan: Plan, uid: UUID, now: datetime) -> list[datetime]:
    """Return the ticks that send what a plan has due in the day after `now`."""
    return list(_ticks(occurrences_between(plan, uid, now, now + DAY)))


def _ticks(instants: Iterable[datetime]) -> Iterator[datetime]:
    for at in instants:
        yield at if not at.second else at.replace(second=0) + MINUTE


def _most(counts: Counter[datetime]) -> tuple[datetime, int] | None:
    return min(counts.items(), key=lambda item: (-item[1], item[0]), default=None)
