"""Decide what is due: pure functions over one action's plan, without events.

A window is (since, now], since = max(watermark, now − look_back); docs/explanation/time.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import merge
from itertools import groupby, islice
from uuid import UUID

from cron import CronSchedule
from models.action import ScheduledActionModel, plan_of
from models.action.plan import CronTrigger, Plan, SolarTrigger
from models.action.schedule import (
    BEGINNING,
    END,
    NO_UID,
    ONE_SECOND,
    Schedule,
    count_union,
    schedules_of,
)

MOST_SENT = 1_000
MOST_MISSED_SHOWN = 10
TOO_LATE = "too late"
OVERTAKEN = "overtaken"


@dataclass(frozen=True, slots=True)
class Missed:
    """An occurrence that is not sent, and the reason."""

    at: datetime
    reason: str


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
    """The outcomes of an action's occurrences in (previous watermark, `watermark`].

    `due` and `missed` ascend. `next_occurrence_at` is the first occurrence after `watermark`.
    """

    due: tuple[datetime, ...]
    missed: tuple[Missed, ...]
    missed_span: MissedSpan | None
    watermark: datetime
    next_occurrence_at: datetime | None

    @property
    def missed_count(self) -> int:
        """How many occurrences are missed, those of the span included."""
        return len(self.missed) + (self.missed_span.count if self.missed_span else 0)


@dataclass(frozen=True, slots=True)
class _Windowed:
    schedule: Schedule
    look_back: timedelta


def get_cron_last_occurrence(
    cron_rule: str, timezone: str, now: datetime, look_back: timedelta = timedelta(minutes=5)
) -> datetime | None:
    """Return the latest occurrence of a rule in (now − look_back, now], in UTC, or None.

    `now` is aware. Raises cron.InvalidRule, which names the field, for an invalid rule or zone.
    """
    return CronSchedule(cron_rule, timezone).last(now - look_back, now)


def get_scheduled_action_last_occurrence(
    action: Plan | ScheduledActionModel, now: datetime, look_back: timedelta | None = None
) -> datetime | None:
    """Return the latest occurrence of an action in (now − look_back, now], in UTC, or None.

    If `look_back` is None, each trigger uses its own. An inactive action has no occurrence.
    The jitter is that of the action's `uid`, if it has one.
    """
    plan = action if isinstance(action, Plan) else plan_of(action)
    if not plan.active:
        return None
    uid = getattr(action, "uid", None) or NO_UID
    found = (
        windowed.schedule.last(now - (look_back or windowed.look_back), now)
        for windowed in _windowed(plan, uid)
    )
    return max((instant for instant in found if instant is not None), default=None)


def next_occurrence(plan: Plan, uid: UUID, after: datetime) -> datetime | None:
    """Return an action's first occurrence strictly after `after`, in UTC; None if inactive."""
    return _next(_windowed(plan, uid), after) if plan.active else None


def next_occurrences(plan: Plan, uid: UUID, after: datetime, count: int) -> list[datetime]:
    """Return up to `count` occurrences strictly after `after`, ascending, active or not."""
    windowed = _windowed(plan, uid)
    found: list[datetime] = []
    while len(found) < count and (instant := _next(windowed, after)) is not None:
        found.append(instant)
        after = instant
    return found


def occurrences_between(plan: Plan, uid: UUID, since: datetime, until: datetime) -> list[datetime]:
    """Return an action's occurrences in (since, until], ascending; none if it is inactive."""
    if not plan.active:
        return []
    found = (one.schedule.between(since, until) for one in _windowed(plan, uid))
    return sorted({at for instants in found for at in instants})


def is_known_to(plan: Plan, instant: datetime) -> bool:
    """Return whether `instant` lies in the years that all of the plan's rules cover."""
    has_years = any(isinstance(one, CronTrigger | SolarTrigger) for one in plan.triggers)
    return not has_years or BEGINNING < instant < END


def has_occurrence(plan: Plan, uid: UUID, instant: datetime) -> bool:
    """Return whether `instant` is an occurrence of the rule, active or not."""
    return is_known_to(plan, instant) and any(
        one.schedule.count(instant - ONE_SECOND, instant) > 0 for one in _windowed(plan, uid)
    )


def neighbours(plan: Plan, uid: UUID, instant: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the last occurrence before `instant` and the first after it, active or not."""
    return last_occurrence(plan, uid, instant - ONE_SECOND), _next(_windowed(plan, uid), instant)


def last_occurrence(plan: Plan, uid: UUID, until: datetime) -> datetime | None:
    """Return an action's last occurrence at or before `until`, active or not, or None."""
    found = [one.schedule.last(BEGINNING, until) for one in _windowed(plan, uid)]
    return max((instant for instant in found if instant is not None), default=None)


def decide(
    plan: Plan, uid: UUID, watermark: datetime, now: datetime, until: datetime | None = None
) -> Decision:
    """Return what is due and what is missed in (watermark, until], by the plan's look-back.

    `until` is `now` unless the plan was replaced before. With catch-up `all`, at most 1,000 are
    due, and the decision's watermark may lie before `until`.
    """
    windowed = _windowed(plan, uid)
    until = now if until is None else until
    if not plan.active:
        return Decision((), (), None, max(watermark, until), None)
    windows = [(one.schedule, max(watermark, now - one.look_back)) for one in windowed]
    due = _due(plan, windows, until)
    if len(due) > MOST_SENT:
        due = due[:MOST_SENT]
        until = due[-1]
    upto = max(watermark, until)
    is_all, following = _is_all(windowed, watermark, until, due)
    if is_all:
        return Decision(tuple(due), (), None, upto, following)
    missed, span = _missed(windowed, watermark, until, now, due)
    return Decision(tuple(due), missed, span, upto, _next(windowed, upto))


# The ends of (since, until], and `now`, at which the look-back ends: it is later than a change that
# was not detected at once.
Window = tuple[datetime, datetime, datetime]


def decisions(plan: Plan, uid: UUID, window: Window) -> Iterator[Decision]:
    """Yield the decisions about a window, each with at most 1,000 due occurrences."""
    since, until, now = window
    while since < until:
        decision = decide(plan, uid, since, now, until)
        yield decision
        since = decision.watermark


def foretold(plan: Plan, uid: UUID, window: Window, at: datetime) -> str | None:
    """Return why deciding a window would miss an occurrence; None if it is sent."""
    for decision in decisions(plan, uid, window):
        if at in decision.due:
            return None
        if at <= decision.watermark:
            break
    return missed_reason(plan, uid, at, window[2])


def missed_reason(plan: Plan, uid: UUID, at: datetime, now: datetime) -> str:
    """Return why an occurrence that is not sent at `now` is missed."""
    return _reason(_windowed(plan, uid), at, now)


def _windowed(plan: Plan, uid: UUID) -> list[_Windowed]:
    schedules = schedules_of(plan, uid)
    return [
        _Windowed(schedule, trigger.look_back)
        for schedule, trigger in zip(schedules, plan.triggers, strict=True)
    ]


def _next(windowed: list[_Windowed], after: datetime) -> datetime | None:
    found = [one.schedule.next(after) for one in windowed]
    return min((instant for instant in found if instant is not None), default=None)


def _due(plan: Plan, windows: list[tuple[Schedule, datetime]], until: datetime) -> list[datetime]:
    if plan.catch_up == "all":
        ascending = merge(*(_within(schedule, since, until) for schedule, since in windows))
        # One more than is sent at once shows that more are due.
        return list(islice((at for at, _ in groupby(ascending)), MOST_SENT + 1))
    latest = [schedule.last(since, until) for schedule, since in windows]
    return sorted(at for at in latest if at is not None)[-1:]


def _within(schedule: Schedule, since: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the occurrences in (since, until] as they are asked for, ascending."""
    while (at := schedule.next(since)) is not None and at <= until:
        yield at
        since = at


def _missed(
    windowed: list[_Windowed],
    watermark: datetime,
    until: datetime,
    now: datetime,
    due: list[datetime],
) -> tuple[tuple[Missed, ...], MissedSpan | None]:
    """Return the missed occurrences in (watermark, until]: the newest ten, and the rest."""
    count = count_union([one.schedule for one in windowed], watermark, until) - len(due)
    if count <= 0:
        return (), None
    newest = _newest(windowed, watermark, until, set(due))
    shown = tuple(Missed(at, _reason(windowed, at, now)) for at in newest)
    if count <= len(shown):
        return shown, None
    oldest = newest[0] - ONE_SECOND
    first = _first_missed(windowed, watermark, due) or newest[0]
    last = _newest(windowed, watermark, oldest, set(due))[-1]
    reasons = sorted({_reason(windowed, first, now), _reason(windowed, last, now)}, reverse=True)
    return shown, MissedSpan(first, last, count - len(shown), " or ".join(reasons), now)


def _is_all(
    windowed: list[_Windowed], watermark: datetime, until: datetime, due: list[datetime]
) -> tuple[bool, datetime | None]:
    """Return whether (watermark, until] has at most one occurrence and it is due, and the next."""
    following = _next(windowed, watermark)
    if due and following == due[0]:
        following = _next(windowed, due[0])
    return following is None or following > until, following


def _newest(
    windowed: list[_Windowed], since: datetime, until: datetime, left_out: set[datetime]
) -> list[datetime]:
    """Return the newest ten in (since, until], except those left out, ascending."""
    found: list[datetime] = []
    while len(found) < MOST_MISSED_SHOWN:
        last = [one.schedule.last(since, until) for one in windowed]
        at = max((instant for instant in last if instant is not None), default=None)
        if at is None:
            break
        if at not in left_out:
            found.append(at)
        until = at - ONE_SECOND
    return found[::-1]


def _first_missed(
    windowed: list[_Windowed], since: datetime, due: list[datetime]
) -> datetime | None:
    first = _next(windowed, since)
    while first is not None and first in due:
        first = _next(windowed, first)
    return first


def _reason(windowed: list[_Windowed], at: datetime, now: datetime) -> str:
    """Return `overtaken` within the look-back of a trigger that names `at`, else `too late`."""
    for one in windowed:
        if at > now - one.look_back and one.schedule.count(at - ONE_SECOND, at):
            return OVERTAKEN
    return TOO_LATE
