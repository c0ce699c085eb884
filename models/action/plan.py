"""What the daemon needs of an action: resolved at save, stored beside the document.

The tick reads only plans, never documents: an unknown step, template or recipient cannot stop it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Literal

from pydantic import AwareDatetime, TypeAdapter

from cron import Blackout, CronSchedule, SolarEvent, Span, Window, YearlyDay, blackout
from cron.zone import zone_named
from models.action.recipients import RecipientFilterModel
from models.celery_task import HandOver
from models.events import Happened, ended_action
from models.job import Job
from models.values.delays import Delay, delay_of

CatchUp = Literal["latest", "all"]
Overlap = Literal["skip", "queue", "allow", "replace"]
TIME_LIMIT = timedelta(hours=4)
BACKOFF = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 30))
# The subjects of an event action without `recipients`.
EVERYBODY_ACTIVE = RecipientFilterModel()


@dataclass(frozen=True, slots=True)
class Closed:
    """The times that `except` leaves out of a rule, on the clock of `zone`."""

    zone: str
    spans: tuple[Span, ...] = ()
    yearly: tuple[YearlyDay, ...] = ()
    windows: tuple[Window, ...] = ()

    @property
    def blackout(self) -> Blackout:
        """The closed times as a `Blackout`; raises cron.InvalidRule for an unknown zone."""
        return blackout(self.zone, self.spans, self.yearly, self.windows)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the closed times: windows first, then days of each year, then spans."""
        names = [one.name for one in self.windows]
        names += [one.name for one in self.yearly]
        return tuple(dict.fromkeys([*names, *(one.name for one in self.spans)]))


@dataclass(frozen=True, slots=True)
class CronTrigger:
    """Due when `rule` matches the wall clock of `zone` (canonical IANA name)."""

    rule: str
    zone: str
    look_back: timedelta
    closed: Closed | None = None
    kind: Literal["cron"] = "cron"


@dataclass(frozen=True, slots=True)
class DueDateTrigger:
    """Due once, at `due_at` (UTC); shown in `zone` (None: the small app's)."""

    due_at: AwareDatetime
    look_back: timedelta
    zone: str | None = None
    kind: Literal["due_date"] = "due_date"


@dataclass(frozen=True, slots=True)
class IntervalTrigger:
    """Due at starting_at + n·every + offset, n ≥ `first_n`; the offset comes from the uid."""

    every: timedelta
    starting_at: AwareDatetime
    first_n: int
    look_back: timedelta
    jitter: timedelta = timedelta(0)
    tolerance: timedelta | None = None
    closed: Closed | None = None
    kind: Literal["interval"] = "interval"


@dataclass(frozen=True, slots=True)
class EventTrigger:
    """Due `delay` (ISO 8601, PT0S at the event) after each such event of a user in `subjects`.

    `zone` is that of the delay's years and months, None without any. The clock alone makes nothing
    due. With `ends`, the event is the end of another action's operation in one of these states,
    about a user or about none.
    """

    event: str
    delay: str
    zone: str | None
    look_back: timedelta
    subjects: RecipientFilterModel = EVERYBODY_ACTIVE
    ends: tuple[str, ...] = ()
    kind: Literal["event"] = "event"

    @property
    def watched(self) -> str | None:
        """The name of the action whose operations end; None for an event of users."""
        return ended_action(self.event) if self.ends else None

    @property
    def after(self) -> Delay:
        """How long after the event it is due; raises ValueError or cron.InvalidRule."""
        return delay_of(self.delay, self.zone)

    def counts(self, event: Happened) -> bool:
        """Return whether an event of this name makes it due.

        An operation has to end in one of `ends`; the filter selects the users.
        """
        if self.ends and event.state not in self.ends:
            return False
        return not event.id or self.subjects.counts(event)


@dataclass(frozen=True, slots=True)
class SolarTrigger:
    """Due at an event of the sun at a place: latitude and longitude in degrees."""

    event: SolarEvent
    lat: float
    lon: float
    look_back: timedelta
    closed: Closed | None = None
    kind: Literal["solar"] = "solar"


Repeating = CronTrigger | IntervalTrigger | SolarTrigger
Trigger = CronTrigger | DueDateTrigger | IntervalTrigger | EventTrigger | SolarTrigger


@dataclass(frozen=True, slots=True)
class Target:
    """Where a notice goes: an address or a URL."""

    kind: Literal["mail", "webhook"]
    to: str


@dataclass(frozen=True, slots=True)
class HookPlan:
    """The targets of an action's notices.

    `alert_after` None is the installation's default, `on_missed` None stands for `on_failure`.
    """

    on_success: tuple[Target, ...] = ()
    on_failure: tuple[Target, ...] = ()
    on_missed: tuple[Target, ...] | None = None
    alert_after: int | None = None

    @property
    def targets(self) -> tuple[Target, ...]:
        """All targets, with those that stand in several lists."""
        return (*self.on_success, *self.on_failure, *(self.on_missed or ()))


@dataclass(frozen=True, slots=True)
class Plan:
    """An action in the form for tick and claim; spans are positive, instants UTC."""

    active: bool
    triggers: tuple[Trigger, ...]
    is_heavy: bool
    queue: str
    catch_up: CatchUp = "latest"
    overlap: Overlap = "skip"
    max_waiting: int = 1
    time_limit: timedelta = TIME_LIMIT
    max_attempts: int = 1
    backoff: tuple[timedelta, ...] = BACKOFF
    starts_at: AwareDatetime | None = None
    ends_at: AwareDatetime | None = None
    hooks: HookPlan | None = None
    # A task of the user's Celery application, sent in place of one of ours.
    hand_over: HandOver | None = None
    # Work for a worker that asks over HTTP, in place of a message.
    job: Job | None = None
    # Among operations of its small app that wait: the highest goes first.
    priority: int = 0

    @property
    def on_event(self) -> EventTrigger | None:
        """The only trigger of an event action; None for actions due by the clock."""
        return next((one for one in self.triggers if isinstance(one, EventTrigger)), None)

    @property
    def watched(self) -> str | None:
        """The name of the action whose ends make this one due, or None."""
        return None if self.on_event is None else self.on_event.watched

    @property
    def closed(self) -> tuple[Closed, ...]:
        """What the exceptions of its rules leave out."""
        found = (one.closed for one in self.triggers if isinstance(one, Repeating))
        return tuple(one for one in found if one is not None)

    def without_exceptions(self) -> "Plan":
        """Return the plan with what its exceptions leave out."""
        if not self.closed:
            return self
        triggers = tuple(
            replace(one, closed=None) if isinstance(one, Repeating) else one
            for one in self.triggers
        )
        return replace(self, triggers=triggers)

    def is_within(self, at: datetime) -> bool:
        """Return whether an instant lies in [starts_at, ends_at)."""
        return (self.starts_at is None or self.starts_at <= at) and (
            self.ends_at is None or at < self.ends_at
        )

    @property
    def longest_look_back_s(self) -> int:
        """How far back, in seconds, an occurrence of any trigger may be decided."""
        return max((int(one.look_back.total_seconds()) for one in self.triggers), default=0)

    @property
    def every(self) -> timedelta | None:
        """The interval of an action that is due at one; None for other kinds."""
        return next((one.every for one in self.triggers if isinstance(one, IntervalTrigger)), None)

    def drops(self, last_start: datetime, now: datetime) -> bool:
        """Return whether an operation that starts at `now` is too early after `last_start`.

        Only intervals with a tolerance drop, within `every` − `tolerance`; catch-up `all` never
        does.
        """
        if self.catch_up == "all":
            return False
        return any(
            isinstance(trigger, IntervalTrigger)
            and trigger.tolerance is not None
            and now < last_start + trigger.every - trigger.tolerance
            for trigger in self.triggers
        )

    def to_json(self) -> str:
        """Return the plan as JSON text: spans in ISO 8601, instants in UTC."""
        return _PLAN.dump_json(self).decode()

    @staticmethod
    def from_json(text: str) -> "Plan":
        """Return the plan in the JSON of `to_json`; raises ValueError for anything else.

        This includes a plan that this release cannot decide by, such as one with a dropped zone.
        """
        plan = _PLAN.validate_json(text)
        for fault in _faults(plan):
            raise ValueError(fault)
        return plan

    def has_same_occurrences(self, other: "Plan") -> bool:
        """Return whether both are due at the same instants, for the same users.

        The look-back does not count.
        """
        return _occurrences(self) == _occurrences(other)


def _occurrences(plan: Plan) -> tuple[object, ...]:
    triggers = tuple(replace(one, look_back=_NO_SPAN) for one in plan.triggers)
    return plan.active, triggers, plan.starts_at, plan.ends_at


@dataclass(frozen=True, slots=True)
class Broken:
    """A stored plan that cannot be read, and why."""

    reason: str

    @property
    def text(self) -> str:
        """The reason as a sentence."""
        return f"the stored plan cannot be read: {self.reason}"


class BrokenPlan(ValueError):
    """The stored plan of an action or an operation cannot be read."""


# In place of a missing or broken plan: nothing is due by it.
NOTHING_PLANNED = Plan(active=False, triggers=(), is_heavy=False, queue="quick")


@lru_cache(maxsize=10_000)
def read_plan(text: str) -> Plan | Broken:
    """Return the plan of a stored text, or why it is broken; never raises."""
    try:
        return Plan.from_json(text)
    except Exception as error:  # whatever the column holds
        return Broken(" ".join(str(error).split())[:500])


def sound(plan: Plan | Broken) -> Plan:
    """Return a readable plan; raises BrokenPlan for a broken one."""
    if isinstance(plan, Broken):
        raise BrokenPlan(f"{plan.text}; apply its document again")
    return plan


def hooks_of(plan: Plan | Broken | None) -> HookPlan | None:
    """Return the hooks of a stored plan; None if it has none or is broken."""
    return plan.hooks if isinstance(plan, Plan) else None


@lru_cache(maxsize=100_000)
def cron_schedule(rule: str, zone: str) -> CronSchedule:
    """Return the schedule of a rule; raises cron.InvalidRule."""
    return CronSchedule(rule, zone)


def _faults(plan: Plan) -> Iterator[str]:
    """Yield the faults of a plan; raises ValueError for those of a rule or zone."""
    spans = [plan.time_limit, *plan.backoff, *(one.look_back for one in plan.triggers)]
    if min(spans) < timedelta(0) or not plan.backoff:
        yield "a span is negative, or there is no backoff"
    if plan.max_waiting < 0 or plan.max_attempts < 1:
        yield "max_waiting or max_attempts is too small"
    for trigger in plan.triggers:
        yield from _trigger_faults(trigger)


def _trigger_faults(trigger: Trigger) -> Iterator[str]:
    match trigger:
        case CronTrigger():
            cron_schedule(trigger.rule, trigger.zone)
        case IntervalTrigger() if trigger.every <= timedelta(0) or trigger.jitter < timedelta(0):
            yield "an interval is not positive"
        case SolarTrigger() if not (abs(trigger.lat) <= 90 and abs(trigger.lon) <= 180):
            yield "a place is not on Earth"
        case EventTrigger():
            zone_named(trigger.zone or "UTC")
            delay_of(trigger.delay, trigger.zone)


_PLAN: TypeAdapter[Plan] = TypeAdapter(Plan)
_NO_SPAN = timedelta(0)
