"""The rules of the clock: cron, a due date, an interval, the sun."""

from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from cron import CronSchedule, InvalidRule, SolarEvent
from models.action.exceptions import Except, Exceptions
from models.action.plan import (
    Closed,
    CronTrigger,
    DueDateTrigger,
    IntervalTrigger,
    SolarTrigger,
)
from models.action.policy import AS_ISO, CRON_LOOK_BACK, DUE_DATE_LOOK_BACK
from models.action.remedies import shorter_than_a_tick
from models.document import Document
from models.parsing import Reading, reading_of
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
from models.values.durations import format_span, parse_span

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


def _shown(now: datetime | None) -> str:
    return format_instant(now) if now is not None else ""
