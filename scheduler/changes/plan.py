"""Compute what applying documents would do, without storing anything."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import Plan
from models.fingerprint import str_to_uuid
from models.sql import parts_of
from models.store import actions
from models.store.actions import cursors, missed
from models.store.tenants import ceilings
from models.store.tenants.ceilings import Ceiling
from models.store.tenants.closing import closing
from scheduler.changes.change import Change, check_name
from scheduler.changes.circles import check_circles
from scheduler.changes.drafts import rows_named
from scheduler.changes.revisions import Revision, dependencies_of, state_of
from scheduler.changes.validation import ChangeContext, Stored, contexts_of, revisions_of
from scheduler.decision import Occurrence
from scheduler.forecast import forecast
from scheduler.from_end import counted
from scheduler.occurrence import next_occurrences, occurrences_between
from scheduler.record import State

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
SHOWN = 5
# Beyond this, the load covers only the actions that are due first.
MOST_ACTIONS = 10_000
MOST_OCCURRENCES = 1_000_000


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What applying one document would do to its action.

    `before` and `after` are the next occurrences by the old and by the new rule. `sent` and
    `missed` are the outcomes up to now by the old rule. `number` is the new revision's; `uid` is
    None for a new action.
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
    # The old rule's; None for a new action, and for one whose plan cannot be read.
    plan_before: Plan | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """The busiest minute of the next day, before and after; `is_whole` if it covers all actions."""

    before: tuple[datetime, int] | None
    after: tuple[datetime, int] | None
    is_whole: bool


def plan_changes(
    connection: sa.Connection, documents: Sequence[object], author: ChangeContext, now: datetime
) -> list[PlannedChange]:
    """Return what `apply_all` would do at `now`, one for each document.

    Raises InvalidDocument with all problems of all documents.
    """
    rows = rows_named(connection, documents, author, locks=False)
    return _planned(connection, rows, documents, author, now)


def plan_replacement(
    connection: sa.Connection, uid: UUID, document: object, author: ChangeContext, now: datetime
) -> PlannedChange:
    """Return what `replace_document` would do at `now`; raises its errors, but for Outdated."""
    row = cursors.read(connection, uid)
    (planned,) = _planned(connection, [row], [document], author, now)
    if row is not None:
        check_name(connection, row, planned.name)
    return planned


def _planned(
    connection: sa.Connection,
    rows: Sequence[Stored | None],
    documents: Sequence[object],
    author: ChangeContext,
    now: datetime,
) -> list[PlannedChange]:
    revisions = revisions_of(documents, contexts_of(rows, author, now), author)
    changes = dependencies_of(rows, revisions)
    check_circles(connection, author.small_app.id, changes, holds=False)
    new = sum(row is None for row in rows)
    if new:
        ceilings.check(connection, author.small_app.id, Ceiling.ACTIONS, author.limits, new)
    recorded = _recorded(connection, rows, now)
    stored = _StoredNow(connection, now, author.small_app.id, recorded)
    return [
        _created(stored, revision) if row is None else _changed(stored, row, revision)
        for row, revision in zip(rows, revisions, strict=True)
    ]


def load(connection: sa.Connection, planned: Iterable[PlannedChange], now: datetime) -> Load:
    """Return the busiest minute of (now, now + 1 day] before and after, over all small apps.

    What calendars leave out counts.
    """
    rows = actions.due_until(connection, now + DAY, MOST_ACTIONS + 1)
    is_whole = len(rows) <= MOST_ACTIONS
    plans = {row.action_uid: plan for row in rows if isinstance(plan := row.plan, Plan)}
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


@dataclass(frozen=True, slots=True)
class _StoredNow:
    """The database at `now`, with the operations of what no tick has decided yet, by action."""

    connection: sa.Connection
    now: datetime
    small_app_id: int
    recorded: Mapping[UUID, Mapping[UUID, datetime]]

    def closing(self, plan: Plan) -> Plan:
        """Return the plan with the calendars of its small app."""
        return closing(self.connection, plan, self.small_app_id)

    def next(self, plan: Plan, uid: UUID, begins: datetime | None = None) -> tuple[datetime, ...]:
        """Return the next occurrences of a plan, stored or one that `begins`."""
        counting = counted(self.connection, (plan, uid), self.now, begins)
        return _next(self.closing(counting), uid, self.now)


def _created(stored: _StoredNow, revision: Revision) -> PlannedChange:
    name, now = revision.columns["name"], stored.now
    after = _next(stored.closing(revision.plan.counted(now, None)), _new_uid(name), now)
    return PlannedChange(name, None, Change.CREATED, 1, (), after, (), 0, revision.plan)


def _recorded(
    connection: sa.Connection, rows: Iterable[Stored | None], now: datetime
) -> dict[UUID, Mapping[UUID, datetime]]:
    """Return the operations from each action's watermark up to `now`, by id."""
    spans = [
        {"action_uid": row.action_uid, "first_at": row.watermark, "last_at": now}
        for row in rows
        if row is not None and row.watermark < now
    ]
    found: dict[UUID, Mapping[UUID, datetime]] = {}
    for some in parts_of(spans, cursors.AT_ONCE):
        of_some = missed.recorded_in(connection, some)
        found |= {span["action_uid"]: those for span, those in zip(some, of_some, strict=True)}
    return found


def _changed(stored: _StoredNow, row: Stored, revision: Revision) -> PlannedChange:
    old = row.plan if row.set_aside is None and isinstance(row.plan, Plan) else None
    uid, name = row.action_uid, revision.columns["name"]
    is_same = old is not None and revision.columns["document_hash"] == row.document_hash
    sent: list[datetime] = []
    missed_count = 0
    if old is not None and not is_same:
        state = state_of(row, stored.closing(old))
        sent, missed_count = _decided(stored, state, min(row.watermark, stored.now))
    return PlannedChange(
        name,
        uid,
        Change.UNCHANGED if is_same else Change.CHANGED,
        row.revision if is_same else row.revision + 1,
        () if old is None else stored.next(old, uid),
        stored.next(revision.plan, uid, None if is_same else stored.now),
        tuple(sent),
        missed_count,
        revision.plan,
        plan_before=old,
    )


def _decided(stored: _StoredNow, state: State, since: datetime) -> tuple[list[datetime], int]:
    """Return the instants after `since` that an action would send, and how many it would miss.

    What was sent while the clock was ahead is neither: its id prevents a second run.
    """
    uid = state.action.uid
    recorded = stored.recorded.get(uid, {})
    sent: list[Occurrence] = []
    count = 0
    for decision in forecast(stored.connection, state, since, stored.now):
        sent += decision.due
        count += decision.missed_count
    if count:
        due = {one.at for one in sent}
        until = stored.now
        not_due = {id: at for id, at in recorded.items() if since < at <= until and at not in due}
        count -= missed.due_among(state.plan, uid, not_due)
    return sorted(one.at for one in sent if one.id_of(uid) not in recorded), count


def _next(plan: Plan, uid: UUID, now: datetime) -> tuple[datetime, ...]:
    return tuple(next_occurrences(plan, uid, now, SHOWN)) if plan.active else ()


def _new_uid(name: str) -> UUID:
    # The jitter of a new action depends on its future uid.
    return str_to_uuid(f"foreseen | {name}")


def _counted(plans: dict[UUID, Plan], now: datetime) -> Counter[datetime]:
    return Counter(minute for uid, plan in plans.items() for minute in _minutes(plan, uid, now))


def _minutes(plan: Plan, uid: UUID, now: datetime) -> list[datetime]:
    """Return the ticks that send a plan's occurrences in the day after `now`."""
    return list(_ticks(occurrences_between(plan, uid, now, now + DAY)))


def _ticks(instants: Iterable[datetime]) -> Iterator[datetime]:
    for at in instants:
        yield at if not at.second else at.replace(second=0) + MINUTE


def _most(counts: Counter[datetime]) -> tuple[datetime, int] | None:
    return min(counts.items(), key=lambda item: (-item[1], item[0]), default=None)
