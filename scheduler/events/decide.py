"""Decide event actions over a window: occurrences that are due, too late or already recorded."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import heappush, heappushpop
from itertools import islice
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import EventTrigger, Plan
from models.fingerprint import fingerprint, str_to_uuid
from models.operation import Cause, OperationState, by_action
from models.store import operations, ticks
from models.store.people import events
from models.store.people.events import Happened, Range
from scheduler.events import Delay, counts, is_within, trigger_delay
from scheduler.missed import record_missed
from scheduler.occurrence import MOST_MISSED_SHOWN, TOO_LATE, MissedSpan, Window
from scheduler.record import ActionRef, Recorded, new_room, operation_row, record_rows, span_row

# The longest regular time between two ticks; more is a downtime.
MOST_BETWEEN_TICKS = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Watched:
    """An event action and its window (since, now]; due at or before `late_until` is too late."""

    action: ActionRef
    plan: Plan
    trigger: EventTrigger
    since: datetime
    late_until: datetime

    @property
    def delay(self) -> Delay:
        """How long after the event it is due."""
        return trigger_delay(self.trigger)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An action's occurrence for one event of one user."""

    watched: Watched
    due_at: datetime
    event: Happened
    id: UUID

    @property
    def is_late(self) -> bool:
        """Whether it lies before the action's look-back."""
        return self.due_at <= self.watched.late_until

    def row(self) -> dict[str, Any]:
        """Return its operation: pending, or missed if it is too late."""
        one = self.watched
        by = by_action(one.action.name, Cause.EVENT, one.trigger.watched)
        row = operation_row(one.action, one.plan, self.id, self.due_at, by) | {
            "subject": self.event.subject,
            "event_id": self.event.event_id,
            "event_at": self.event.at,
            # Overlap applies only to occurrences of the clock.
            "overlap_key": None,
        }
        if self.is_late:
            row |= {"state": OperationState.MISSED.value, "reason": TOO_LATE}
        return row


def watched_of(
    action: ActionRef, plan: Plan, effective_from: datetime, now: datetime, decided: datetime | None
) -> Watched:
    """Return the window of an event action; events are decided up to `decided`, if ever.

    The window begins a look-back before `decided`, for events that became known later. They are
    in time unless a downtime lies between. Raises ValueError or cron.InvalidRule for a broken
    trigger.
    """
    trigger = plan.on_event
    if trigger is None:
        raise ValueError("the plan of this event action has no event; apply its document again")
    trigger_delay(trigger)
    since, late_until = _bounds(trigger.look_back, now, decided)
    return Watched(action, plan, trigger, max(since or effective_from, effective_from), late_until)


def _bounds(
    look_back: timedelta, now: datetime, decided: datetime | None
) -> tuple[datetime | None, datetime]:
    """Return the start of the window, None for unbounded, and the end of what is too late."""
    if decided is None:
        return None, now - look_back
    since = min(decided, now) - look_back
    is_down = now - decided > MOST_BETWEEN_TICKS
    return since, now - look_back if is_down else since


def on_its_way_since(
    connection: sa.Connection, plan: Plan, effective_from: datetime, now: datetime
) -> datetime:
    """Return the instant after which due events may still become known in time."""
    look_back = timedelta(seconds=plan.longest_look_back_s)
    decided = ticks.instant_fact(connection, ticks.EVENTS_DECIDED)
    return max(effective_from, _bounds(look_back, now, decided)[1])


def undecided(
    connection: sa.Connection, watched: Iterable[Watched], now: datetime
) -> Iterator[list[Occurrence]]:
    """Yield the occurrences of these actions in their windows without an operation, in batches.

    Each action's filter selects the users. Actions with equal event and delay share a query.
    """
    groups = _groups(watched)
    ranges: list[Range] = []
    asked: list[list[Watched]] = []
    for (app, event, delay), sharing in groups.items():
        since = min(one.since for one in sharing)
        for begin, end in delay.instants(since, now):
            ranges.append(Range(len(asked), app, event, begin, end))
            asked.append(sharing)
    for some in events.happened(connection, ranges):
        found = (
            one
            for happened in _with_groups(connection, some, asked)
            for one in _occurrences(happened, asked[happened.number], now)
        )
        # Many actions may share an event: a batch of events may be many operations.
        while part := list(islice(found, events.BATCH)):
            known = operations.recorded_among(connection, [one.id for one in part])
            fresh = [one for one in part if one.id not in known]
            if fresh:
                yield fresh


def undecided_until(
    connection: sa.Connection, action: ActionRef, plan: Plan, window: Window
) -> Iterator[list[Occurrence]]:
    """Yield the undecided occurrences of a changing event action, in batches.

    The window reaches from the action's start until the change.
    """
    effective_from, until, now = window
    decided = ticks.instant_fact(connection, ticks.EVENTS_DECIDED)
    watched = watched_of(action, plan, effective_from, now, decided)
    return undecided(connection, [watched], until)


def record_due(connection: sa.Connection, due: Sequence[Occurrence]) -> Recorded:
    """Record occurrences as operations, reserved for the caller; a duplicate is a no-op."""
    hooks = {one.watched.action.uid: one.watched.plan.hooks for one in due}
    return record_rows(connection, [one.row() for one in due], new_room(), hooks)


def decide_until(
    connection: sa.Connection, action: ActionRef, plan: Plan, window: Window
) -> Recorded:
    """Decide and record one event action up to a change, in the caller's transaction."""
    late, due = Late(), []
    for some in undecided_until(connection, action, plan, window):
        due += [one for one in some if not one.is_late]
        late.add(one for one in some if one.is_late)
    return record_due(connection, due) + late.record(connection)


@dataclass
class _LateOnes:
    """The late occurrences of one action: the newest, and the ends and count of the older ones."""

    newest: list[tuple[datetime, str, Occurrence]] = field(default_factory=list)
    first_at: datetime | None = None
    last_at: datetime | None = None
    count: int = 0

    def add(self, one: Occurrence) -> None:
        entry = (one.due_at, str(one.id), one)
        if len(self.newest) < MOST_MISSED_SHOWN:
            heappush(self.newest, entry)
            return
        at = heappushpop(self.newest, entry)[0]
        self.first_at = min(self.first_at or at, at)
        self.last_at = max(self.last_at or at, at)
        self.count += 1

    def span(self, action: ActionRef) -> list[dict[str, Any]]:
        if self.first_at is None or self.last_at is None:
            return []
        return [span_row(action, MissedSpan(self.first_at, self.last_at, self.count, TOO_LATE))]


class Late:
    """Late occurrences by action, in bounded memory."""

    def __init__(self) -> None:
        self._ones: dict[ActionRef, _LateOnes] = {}

    @property
    def actions(self) -> set[ActionRef]:
        """The actions with late occurrences."""
        return set(self._ones)

    def add(self, late: Iterable[Occurrence]) -> None:
        """Add late occurrences."""
        for one in late:
            self._ones.setdefault(one.watched.action, _LateOnes()).add(one)

    def add_all(self, other: "Late") -> None:
        """Add the late occurrences of other actions."""
        self._ones |= other._ones

    def record(self, connection: sa.Connection) -> Recorded:
        """Record each action's newest ten as missed, and the older ones as one span."""
        rows = [one.row() for ones in self._ones.values() for *_, one in ones.newest]
        spans = [span for action, ones in self._ones.items() for span in ones.span(action)]
        plans = {action.uid: ones.newest[0][2].watched.plan for action, ones in self._ones.items()}
        hooks = {uid: plan.hooks for uid, plan in plans.items()}
        return Recorded(missed=record_missed(connection, rows, spans, hooks))


def _groups(watched: Iterable[Watched]) -> dict[tuple[int, str, Delay], list[Watched]]:
    groups: dict[tuple[int, str, Delay], list[Watched]] = {}
    for one in watched:
        key = (one.action.small_app_id, one.trigger.event, one.delay)
        groups.setdefault(key, []).append(one)
    return groups


def _with_groups(
    connection: sa.Connection, found: Sequence[Happened], asked: Sequence[Sequence[Watched]]
) -> list[Happened]:
    """Return events, with their users' groups if an action filters by groups."""
    wanted: dict[int, list[Happened]] = {}
    plain: list[Happened] = []
    for one in found:
        sharing = asked[one.number]
        if any(watched.trigger.subjects.groups for watched in sharing):
            wanted.setdefault(sharing[0].action.small_app_id, []).append(one)
        else:
            plain.append(one)
    for app, some in wanted.items():
        plain += events.with_groups(connection, app, some)
    return plain


def _occurrences(
    event: Happened, sharing: Sequence[Watched], now: datetime
) -> Iterator[Occurrence]:
    due_at = sharing[0].delay.due(event.at)
    for one in sharing:
        if due_at is None or not one.since < due_at <= now:
            continue
        if is_within(one.plan, due_at) and counts(one.trigger, event):
            text = fingerprint(
                one.action.uid, due_at, subject=event.subject, event_id=event.event_id
            )
            yield Occurrence(one, due_at, event, str_to_uuid(text))
