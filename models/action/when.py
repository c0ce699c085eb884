"""The rule of an action: cron, a due date, an interval, the sun, on an event, after an event."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import InitErrorDetails

from cron import CronSchedule, InvalidRule, SolarEvent
from models.action.exceptions import MOST_ENTRIES, Except, Exceptions, too_many_exceptions, work_of
from models.action.plan import (
    Closed,
    CronTrigger,
    DueDateTrigger,
    EventTrigger,
    IntervalTrigger,
    SolarTrigger,
    Trigger,
)
from models.action.policy import AS_ISO, CRON_LOOK_BACK, DUE_DATE_LOOK_BACK, EVENT_LOOK_BACK
from models.action.recipients import RecipientFilterModel
from models.action.remedies import as_rule, shorter_than_a_tick
from models.action.schedule import leaves_some
from models.document import Document
from models.durations import format_span, parse_span
from models.events import (
    AT_ONCE,
    AfterEndModel,
    AfterEventModel,
    DelayedRule,
    EventRule,
    OnEndModel,
    OnEventModel,
    ended_action,
    has_calendar_part,
)
from models.parsing import Reading, meant_by, reading_of
from models.problems import line_error, line_errors, listed, nearest, raise_all, segment
from models.values import (
    Flag,
    UtcInstant,
    Zone,
    format_instant,
    has_offset,
    one_of,
    parse_degrees,
    parse_instant,
)

MOST_RULES = 100
LONGEST_INTERVAL = timedelta(days=3660)
NOTHING = timedelta(0)


def _cron_rule(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError('write a text of five fields such as "0 7 * * 1"')
    try:
        CronSchedule(value, "UTC")
    except InvalidRule as error:
        raise ValueError(str(error)) from None
    return value


Every = Annotated[
    timedelta,
    BeforeValidator(partial(parse_span, most=LONGEST_INTERVAL, seconds_allowed=True)),
    AS_ISO,
]
Spread = Annotated[
    timedelta, BeforeValidator(partial(parse_span, least=NOTHING, most=LONGEST_INTERVAL)), AS_ISO
]


class CronModel(Document):
    """Due when the rule matches the wall clock of `timezone` (default: the small app's)."""

    cron_rule: Annotated[str, BeforeValidator(_cron_rule)]
    timezone: Zone
    except_: Except = Field(None, alias="except")

    @classmethod
    def completed(cls, raw: dict[str, Any], reading: Reading, /) -> dict[str, Any]:
        """Return `raw` with the small app's zone if it has none."""
        return {"timezone": reading.default_zone, **raw}

    def trigger(self, look_back: timedelta | None) -> CronTrigger:
        """Return what the tick needs; the rule is normalised."""
        schedule = CronSchedule(self.cron_rule, self.timezone)
        return CronTrigger(
            schedule.rule, schedule.zone, look_back or CRON_LOOK_BACK, _closed(self.except_)
        )


class DueDateModel(Document):
    """Due once; a `due_date` without an offset is read in `timezone` (default: the small app's)."""

    # Fields are read in order: the date needs the zone.
    timezone: Zone | None = None
    due_date: str

    @classmethod
    def completed(cls, raw: dict[str, Any], reading: Reading, /) -> dict[str, Any]:
        """Return `raw` with the small app's zone if the date has neither zone nor offset."""
        written = raw.get("due_date")
        if isinstance(written, str) and not has_offset(written):
            return {"timezone": reading.default_zone, **raw}
        return raw

    @field_validator("due_date", mode="before")
    @classmethod
    def _due_date(cls, value: object, info: ValidationInfo) -> object:
        reading = reading_of(info)
        due_at = parse_instant(value, info.data.get("timezone") or reading.default_zone)
        late = reading.now is not None and due_at <= reading.now
        if late and due_at not in reading.kept_due_dates:
            raise ValueError(f"is in the past (it is {_shown(reading.now)}); write a later one")
        return value

    @property
    def due_at(self) -> datetime:
        """The due date in UTC."""
        return parse_instant(self.due_date, self.timezone or "UTC")

    def trigger(self, look_back: timedelta | None) -> DueDateTrigger:
        """Return what the tick needs."""
        return DueDateTrigger(self.due_at, look_back or DUE_DATE_LOOK_BACK, self.timezone)


class Excepted(Document):
    """A rule whose `except` needs a zone (default: the small app's, stored only with `except`)."""

    timezone: Zone | None = None
    except_: Except = Field(None, alias="except")

    @classmethod
    def completed(cls, raw: dict[str, Any], reading: Reading, /) -> dict[str, Any]:
        """Return `raw` with the small app's zone if it has exceptions and no zone."""
        return {"timezone": reading.default_zone, **raw} if "except" in raw else raw


class IntervalModel(Excepted):
    """Due at starting_at + n·every + offset, on a fixed grid.

    Without `starting_at` the grid begins at the action's creation, which is no occurrence itself:
    `starting_at` and `skip_first` store that. The offset lies in [0, jitter) and comes from the
    uid.
    """

    every: Every
    starting_at: UtcInstant
    skip_first: Flag = False
    jitter: Spread = NOTHING
    tolerance: Spread | None = None

    @classmethod
    def completed(cls, raw: dict[str, Any], reading: Reading, /) -> dict[str, Any]:
        """Return `raw` with the action's creation as `starting_at` if it has none."""
        raw = super().completed(raw, reading)
        if "starting_at" in raw or reading.created_at is None:
            return raw
        begins = format_instant(reading.created_at)
        return {"starting_at": begins, "skip_first": True, **raw}

    @field_validator("every")
    @classmethod
    def _a_tick_at_least(cls, every: timedelta, info: ValidationInfo) -> timedelta:
        tick = reading_of(info).tick
        if every < tick:
            raise ValueError(shorter_than_a_tick(every, tick))
        return every

    @field_validator("jitter")
    @classmethod
    def _within_one_interval(cls, jitter: timedelta, info: ValidationInfo) -> timedelta:
        every = info.data.get("every")
        if every is not None and jitter > every:
            raise ValueError(f'is longer than `every`; write "{format_span(every)}" or less')
        return jitter

    @field_validator("tolerance")
    @classmethod
    def _under_one_interval(cls, tolerance: timedelta, info: ValidationInfo) -> timedelta:
        every = info.data.get("every")
        if every is not None and tolerance >= every:
            raise ValueError(f'is not shorter than `every`; write less than "{format_span(every)}"')
        return tolerance

    def trigger(self, look_back: timedelta | None) -> IntervalTrigger:
        """Return what the tick needs."""
        return IntervalTrigger(
            every=self.every,
            starting_at=self.starting_at,
            first_n=1 if self.skip_first else 0,
            look_back=look_back or self.every,
            jitter=self.jitter,
            tolerance=self.tolerance,
            closed=_closed(self.except_),
        )


class SolarModel(Excepted):
    """Due at an event of the sun at a place; north and east are positive."""

    solar: Annotated[SolarEvent, BeforeValidator(one_of(*SolarEvent))]
    lat: Annotated[float, BeforeValidator(partial(parse_degrees, most=90))]
    lon: Annotated[float, BeforeValidator(partial(parse_degrees, most=180))]

    def trigger(self, look_back: timedelta | None) -> SolarTrigger:
        """Return what the tick needs."""
        return SolarTrigger(
            self.solar, self.lat, self.lon, look_back or CRON_LOOK_BACK, _closed(self.except_)
        )


def _closed(exceptions: Exceptions | None) -> Closed | None:
    return None if exceptions is None else exceptions.closed


KINDS: Mapping[str, type[Document]] = {
    "cron_rule": CronModel,
    "due_date": DueDateModel,
    "every": IntervalModel,
    "solar": SolarModel,
    "on": OnEventModel,
    "after": AfterEventModel,
}
ALONE = ("every", "on", "after")
# The same keys with an object: the end of another action's operation.
ENDS_OF_ACTIONS: Mapping[str, type[Document]] = {"on": OnEndModel, "after": AfterEndModel}
OfEvents = OnEventModel | AfterEventModel | OnEndModel | AfterEndModel
Rule = CronModel | DueDateModel | IntervalModel | SolarModel | OfEvents


class WhenModel(BaseModel):
    """The rule of an action: one object, or a list, the union of its rules."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    rules: tuple[Rule, ...]
    is_list: bool = False

    @property
    def is_event(self) -> bool:
        """Whether the action is due on or after an event."""
        return any(isinstance(rule, EventRule) for rule in self.rules)

    @property
    def is_about_users(self) -> bool:
        """Whether the action is due on or after an event of users."""
        return any(isinstance(rule, EventRule) and not rule.ends for rule in self.rules)

    @property
    def watched(self) -> str | None:
        """The name of the action whose ends make this one due, or None."""
        events = (rule.event for rule in self.rules if isinstance(rule, EventRule))
        return next((ended_action(event) for event in events), None)

    @property
    def every(self) -> timedelta | None:
        """The interval's length; None for other kinds."""
        return next((rule.every for rule in self.rules if isinstance(rule, IntervalModel)), None)

    @property
    def due_dates(self) -> frozenset[datetime]:
        """The due dates in UTC."""
        return frozenset(rule.due_at for rule in self.rules if isinstance(rule, DueDateModel))

    def triggers(
        self, look_back: timedelta | None, subjects: RecipientFilterModel | None = None
    ) -> tuple[Trigger, ...]:
        """Return what the tick needs of each rule; `look_back` None means each default.

        `subjects` selects the users of an event action.
        """
        return tuple(
            _event_trigger(rule, look_back, subjects or RecipientFilterModel())
            if isinstance(rule, EventRule)
            else rule.trigger(look_back)
            for rule in self.rules
        )

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, list | tuple):
            return {"rules": _read_list(value, info), "is_list": True}
        return {"rules": (_read_rule(value, info),), "is_list": False}

    @model_serializer
    def _written(self) -> Any:
        rules = [
            rule.model_dump(mode="json", exclude_unset=True, by_alias=True) for rule in self.rules
        ]
        return rules if self.is_list else rules[0]


def _event_trigger(
    rule: EventRule,
    look_back: timedelta | None,
    subjects: RecipientFilterModel,
) -> EventTrigger:
    return EventTrigger(
        event=rule.event,
        delay=rule.delay if isinstance(rule, DelayedRule) else AT_ONCE,
        # A zone beside an exact delay has no effect.
        zone=rule.timezone if isinstance(rule, DelayedRule) and has_calendar_part(rule) else None,
        look_back=look_back or EVENT_LOOK_BACK,
        subjects=subjects,
        ends=rule.ends,
    )


def _read_list(values: list[object] | tuple[object, ...], info: ValidationInfo) -> list[Document]:
    if not values:
        raise ValueError("is empty; write at least one rule")
    if len(values) > MOST_RULES:
        raise ValueError(f"has {len(values)} entries; write at most {MOST_RULES}")
    rules: list[Document] = []
    faults: list[InitErrorDetails] = []
    work = 0
    for number, value in enumerate(values):
        try:
            work += work_of(value)
            if work > MOST_ENTRIES:
                raise ValueError(too_many_exceptions())
            rules.append(_read_clock_rule(value, info))
        except ValidationError as error:
            faults += line_errors(error, under=(number,))
        except ValueError as error:
            faults.append(line_error((number,), value, str(error)))
    raise_all("when", faults)
    return rules


def _read_clock_rule(value: object, info: ValidationInfo) -> Document:
    if any(key in as_rule(value, in_list=True) for key in ALONE):
        raise ValueError(
            "a list holds cron rules, due dates and events of the sun only; "
            "make another action for this"
        )
    return _read_rule(value, info)


def _read_rule(value: object, info: ValidationInfo) -> Document:
    """Return the rule of the kind that its keys show; raises ValueError or ValidationError."""
    raw = as_rule(value)
    kinds = [key for key in KINDS if key in raw]
    if len(kinds) > 1:
        raise ValueError(f"has two kinds, {listed(kinds)}; keep one, or make another action")
    if not kinds:
        raise ValueError(_no_kind(raw))
    rule = _model_of(kinds[0], raw).model_validate(raw, context=info.context)
    _check_leaves_some(rule, reading_of(info).now)
    return rule


def _model_of(kind: str, raw: Mapping[str, object]) -> type[Document]:
    is_end = kind in ENDS_OF_ACTIONS and isinstance(raw[kind], Mapping)
    return ENDS_OF_ACTIONS[kind] if is_end else KINDS[kind]


def _check_leaves_some(rule: Document, now: datetime | None) -> None:
    """Refuse a rule whose exceptions leave nothing of its next years."""
    if (
        now is None
        or not isinstance(rule, CronModel | IntervalModel | SolarModel)
        or rule.except_ is None
    ):
        return
    if not leaves_some(rule.trigger(None), now):
        raise ValueError(
            "has an `except` that leaves out everything; remove an entry of it, or the rule"
        )


def _no_kind(raw: Mapping[str, object]) -> str:
    rule = _crontab_of(raw)
    if rule is not None:
        return f"has the fields of a crontab; write {json.dumps({'cron_rule': rule})}"
    for key in raw:
        near = meant_by(key, KINDS) or nearest(key, KINDS)
        if near is not None:
            return f'has the unknown key "{segment(key)}"; did you mean "{near}"?'
    return f"has no rule; write one of {listed(KINDS)}"


def _crontab_of(raw: Mapping[str, object]) -> str | None:
    """Return the rule that an object with the fields of Celery's `crontab` writes, if it is one."""
    names = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
    if not {"minute", "hour"} & set(raw):
        return None
    rule = " ".join(str(raw.get(name, "*")) for name in names)
    try:
        CronSchedule(rule, zone="UTC")
    except ValueError:
        return None
    return rule


def _shown(now: datetime | None) -> str:
    return format_instant(now) if now is not None else ""
