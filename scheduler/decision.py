"""Decide what is due and what is missed in a window, by the clock, by events and by ends: pure.

The tick records these decisions; a change, its plan, `explain` and `simulate` ask for the same.
Windows are half-open (since, until]; docs/explanation/time.md.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from heapq import merge
from itertools import groupby, islice
from uuid import UUID

from models.action.plan import Plan
from models.action.schedule import ONE_SECOND, Schedule, union
from models.events import Happened
from models.fingerprint import fingerprint, operation_id, str_to_uuid
from scheduler.occurrence import latest, looking_back

MOST_SENT = 1_000
MOST_MISSED_SHOWN = 10
TOO_LATE = "too late"
OVERTAKEN = "overtaken"
# The longest regular time between two ticks; more is a downtime.
MOST_BETWEEN_TICKS = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An instant at which an action is due, and the event that makes it due; None by the clock.

    `id` is the operation's, known of an event's occurrence.
    """

    at: datetime
    event: Happened | None = None
    id: UUID | None = None

    @property
    def subject(self) -> str | None:
        """The user whom it is about, or None."""
        return None if self.event is None else self.event.subject

    def id_of(self, uid: UUID) -> UUID:
        """Return the id of its operation, `uid` being the action."""
        return self.id or operation_id(uid, self.at)


@dataclass(frozen=True, slots=True)
class Missed:
    """An occurrence that is not sent, and the reason."""

    occurrence: Occurrence
    reason: str

    @property
    def at(self) -> datetime:
        """When it was due."""
        return self.occurrence.at


@dataclass(frozen=True, slots=True)
class MissedSpan:
    """Older occurrences that are not sent: their ends, count, reason and instant of decision."""

    first_at: datetime
    last_at: datetime
    count: int
    reason: str
    decided_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcomes of an action's occurrences in a window that ends at `watermark`.

    `due` and `missed` ascend. `next_occurrence_at` is the clock's first one after `watermark`, be
    it excluded by a calendar, which may change until then; or when an interval from the end has to
    be looked at again, and `ended_at` is what that counts from.
    """

    watermark: datetime
    due: tuple[Occurrence, ...] = ()
    missed: tuple[Missed, ...] = ()
    missed_span: MissedSpan | None = None
    next_occurrence_at: datetime | None = None
    ended_at: datetime | None = None

    def __add__(self, later: "Decision") -> "Decision":
        """Return both as one decision of events: with one list of missed ones, and one span."""
        watermark = max(self.watermark, later.watermark)
        spans = [one for one in (self.missed_span, later.missed_span) if one is not None]
        missed, span = _folded((*self.missed, *later.missed), spans)
        return Decision(watermark, self.due + later.due, missed, span)

    @property
    def due_at(self) -> tuple[datetime, ...]:
        """The instants of what is due."""
        return tuple(one.at for one in self.due)


def decide(plan: Plan, uid: UUID, watermark: datetime, now: datetime) -> Decision:
    """Return what the clock makes due, and what is missed, in (watermark, now].

    With catch-up `all`, at most 1,000 are due, and the decision's watermark may lie before `now`.
    """
    if not plan.active:
        return Decision(max(watermark, now))
    parts = plan.schedules(uid)
    whole = union(parts)
    looked_at = [(part, max(watermark, since)) for part, since in looking_back(plan, parts, now)]
    due, until = _due(plan, looked_at, now), now
    if len(due) > MOST_SENT:
        due = due[:MOST_SENT]
        until = due[-1]
    upto = max(watermark, until)
    sent = tuple(Occurrence(at) for at in due)
    missed_in = partial(_missed, whole, (watermark, until, now), due, partial(_reason, plan, parts))
    if plan.calendars:
        # Without a search past `until`: calendars may leave nothing for decades.
        following = plan.with_calendars({}).schedule(uid).next(upto)
        return Decision(upto, sent, *missed_in(), following)
    is_all, following = _is_all(whole, watermark, until, due)
    if is_all:
        return Decision(upto, sent, next_occurrence_at=following)
    return Decision(upto, sent, *missed_in(), whole.next(upto))


def decisions(plan: Plan, uid: UUID, since: datetime, now: datetime) -> Iterator[Decision]:
    """Yield the clock's decisions about (since, now], each with at most 1,000 due occurrences."""
    while since < now:
        decision = decide(plan, uid, since, now)
        yield decision
        since = decision.watermark


@dataclass(frozen=True, slots=True)
class EventWindow:
    """The window (since, until] of an event action; due at or before `late_until` is too late."""

    since: datetime
    until: datetime
    late_until: datetime


def event_window(
    plan: Plan, effective_from: datetime, now: datetime, decided: datetime | None
) -> EventWindow:
    """Return the window in which events are decided at `now`; up to `decided` they are, if ever.

    It begins a look-back before `decided`, for events that became known later, but not before the
    action's rule came into force. They are in time unless a downtime lies between.
    """
    look_back = timedelta(seconds=plan.longest_look_back_s)
    if decided is None:
        return EventWindow(effective_from, now, now - look_back)
    since = min(decided, now) - look_back
    is_down = now - decided > MOST_BETWEEN_TICKS
    late_until = now - look_back if is_down else since
    return EventWindow(max(since, effective_from), now, late_until)


def occurrence_of(
    action: tuple[Plan, UUID], event: Happened, due_at: datetime | None, window: EventWindow
) -> Occurrence | None:
    """Return the occurrence of an event action for an event that is due at `due_at`.

    None if it lies outside the window or the action's bounds, or its rule does not select the
    event.
    """
    plan, uid = action
    if due_at is None or not window.since < due_at <= window.until:
        return None
    if not (plan.policy.is_within(due_at) and plan.selects(event)):
        return None
    text = fingerprint(uid, due_at, subject=event.subject, event_id=event.event_id)
    return Occurrence(due_at, event, str_to_uuid(text))


def decide_events(known: Iterable[Occurrence], window: EventWindow) -> Decision:
    """Return which of these occurrences of events are due, and which are too late.

    Each is its own: none overtakes another.
    """
    late: list[Missed] = []
    due: list[Occurrence] = []
    for one in known:
        if one.at <= window.late_until:
            late.append(Missed(one, TOO_LATE))
        else:
            due.append(one)
    missed, span = _folded(late)
    return Decision(window.until, tuple(due), missed, span)


def _folded(
    missed: Iterable[Missed], spans: Sequence[MissedSpan] = ()
) -> tuple[tuple[Missed, ...], MissedSpan | None]:
    """Return the newest ten of what events missed, and the older ones with `spans` as one span."""
    ordered = sorted(missed, key=_order)
    older, newest = ordered[:-MOST_MISSED_SHOWN], ordered[-MOST_MISSED_SHOWN:]
    if not (older or spans):
        return tuple(newest), None
    first = min([*(one.at for one in older[:1]), *(one.first_at for one in spans)])
    last = max([*(one.at for one in older[-1:]), *(one.last_at for one in spans)])
    count = len(older) + sum(one.count for one in spans)
    return tuple(newest), MissedSpan(first, last, count, TOO_LATE)


def _order(missed: Missed) -> tuple[datetime, str, str]:
    event = missed.occurrence.event
    return missed.at, missed.occurrence.subject or "", (event and event.event_id) or ""


def _due(plan: Plan, windows: list[tuple[Schedule, datetime]], until: datetime) -> list[datetime]:
    if plan.policy.catch_up == "all":
        ascending = merge(*(_within(schedule, since, until) for schedule, since in windows))
        # One more than is sent at once shows that more are due.
        return list(islice((at for at, _ in groupby(ascending)), MOST_SENT + 1))
    at = latest(windows, until)
    return [] if at is None else [at]


def _within(schedule: Schedule, since: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the occurrences in (since, until] as they are asked for, ascending."""
    end = schedule.last(since, until)
    while end is not None and since < end:
        at = schedule.next(since)
        if at is None:
            return
        yield at
        since = at


def _missed(
    whole: Schedule,
    window: tuple[datetime, datetime, datetime],
    due: list[datetime],
    reason_of: Callable[..., str],
) -> tuple[tuple[Missed, ...], MissedSpan | None]:
    """Return what `now` missed in (watermark, until]: the newest ten, and the rest."""
    watermark, until, now = window
    count = whole.count(watermark, until) - len(due)
    if count <= 0:
        return (), None
    newest = _newest(whole, watermark, until, set(due))
    shown = tuple(Missed(Occurrence(at), reason_of(at, now)) for at in newest)
    if count <= len(shown):
        return shown, None
    oldest = newest[0] - ONE_SECOND
    first = _first_missed(whole, watermark, due) or newest[0]
    last = _newest(whole, watermark, oldest, set(due))[-1]
    reasons = sorted({reason_of(first, now), reason_of(last, now)}, reverse=True)
    return shown, MissedSpan(first, last, count - len(shown), " or ".join(reasons), now)


def _is_all(
    whole: Schedule, watermark: datetime, until: datetime, due: list[datetime]
) -> tuple[bool, datetime | None]:
    """Return whether (watermark, until] has at most one occurrence and it is due, and the next."""
    following = whole.next(watermark)
    if due and following == due[0]:
        following = whole.next(due[0])
    return following is None or following > until, following


def _newest(
    whole: Schedule, since: datetime, until: datetime, left_out: set[datetime]
) -> list[datetime]:
    """Return the newest ten in (since, until], except those left out, ascending."""
    found: list[datetime] = []
    while len(found) < MOST_MISSED_SHOWN:
        at = whole.last(since, until)
        if at is None:
            break
        if at not in left_out:
            found.append(at)
        until = at - ONE_SECOND
    return found[::-1]


def _first_missed(whole: Schedule, since: datetime, due: list[datetime]) -> datetime | None:
    first = whole.next(since)
    while first is not None and first in due:
        first = whole.next(first)
    return first


def _reason(plan: Plan, parts: Sequence[Schedule], at: datetime, now: datetime) -> str:
    """Return `overtaken` within the look-back of a rule that names `at`, else `too late`."""
    for part, since in looking_back(plan, parts, now):
        if at > since and part.count(at - ONE_SECOND, at):
            return OVERTAKEN
    return TOO_LATE
