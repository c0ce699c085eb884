"""Find the occurrences that the clock gives an action by its plan: pure."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from models.action.document import ScheduledActionModel, plan_of
from models.action.plan import Plan
from models.action.rules import cron_schedule
from models.action.schedule import BEGINNING, END, NO_UID, ONE_SECOND, Schedule

FOREVER = datetime.max.replace(tzinfo=UTC)


def get_cron_last_occurrence(
    cron_rule: str, timezone: str, now: datetime, look_back: timedelta = timedelta(minutes=5)
) -> datetime | None:
    """Return the latest occurrence of a rule in (now − look_back, now], in UTC, or None.

    `now` is aware. Raises cron.InvalidRule, which names the field, for an invalid rule or zone.
    """
    return cron_schedule(cron_rule, timezone).last(now - look_back, now)


def get_scheduled_action_last_occurrence(
    action: Plan | ScheduledActionModel, now: datetime, look_back: timedelta | None = None
) -> datetime | None:
    """Return the latest occurrence of an action in (now − look_back, now], in UTC, or None.

    If `look_back` is None, each rule uses its own. An inactive action has no occurrence.
    The jitter is that of the action's `uid`, if it has one.
    """
    plan = action if isinstance(action, Plan) else plan_of(action)
    if not plan.active:
        return None
    uid = getattr(action, "uid", None) or NO_UID
    return latest(looking_back(plan, plan.schedules(uid), now, look_back), now)


def looking_back(
    plan: Plan, parts: Sequence[Schedule], now: datetime, look_back: timedelta | None = None
) -> Iterator[tuple[Schedule, datetime]]:
    """Yield the schedule of each rule with the instant at which its look-back begins."""
    for part, rule in zip(parts, plan.rules, strict=True):
        yield part, now - (plan.look_back_of(rule) if look_back is None else look_back)


def latest(windows: Iterable[tuple[Schedule, datetime]], until: datetime) -> datetime | None:
    """Return the latest occurrence of schedules, each in its own (since, until], or None."""
    found = (schedule.last(since, until) for schedule, since in windows)
    return max((at for at in found if at is not None), default=None)


def next_occurrence(plan: Plan, uid: UUID, after: datetime) -> datetime | None:
    """Return an action's first occurrence strictly after `after`, in UTC; None if inactive."""
    return plan.schedule(uid).next(after) if plan.active else None


def next_occurrences(
    plan: Plan, uid: UUID, after: datetime, count: int, until: datetime = FOREVER
) -> list[datetime]:
    """Return up to `count` occurrences in (after, until], ascending, active or not."""
    schedule = plan.schedule(uid)
    found: list[datetime] = []
    while len(found) < count and (at := schedule.next(after)) is not None and at <= until:
        found.append(at)
        after = at
    return found


def occurrences_between(plan: Plan, uid: UUID, since: datetime, until: datetime) -> list[datetime]:
    """Return an action's occurrences in (since, until], ascending; none if it is inactive."""
    return plan.schedule(uid).between(since, until) if plan.active else []


def is_known_to(plan: Plan, instant: datetime) -> bool:
    """Return whether `instant` lies in the years that all of the plan's rules cover."""
    return not any(one.has_years for one in plan.rules) or BEGINNING < instant < END


def has_occurrence(plan: Plan, uid: UUID, instant: datetime) -> bool:
    """Return whether `instant` is an occurrence of the rule, active or not."""
    if not is_known_to(plan, instant):
        return False
    return plan.schedule(uid).count(instant - ONE_SECOND, instant) > 0


def neighbours(plan: Plan, uid: UUID, instant: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the last occurrence before `instant` and the first after it, active or not."""
    schedule = plan.schedule(uid)
    return schedule.last(BEGINNING, instant - ONE_SECOND), schedule.next(instant)
