"""The rules of the clock and of the sun: cron, a due date, sunrise and its like."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Annotated, Any, ClassVar, Self
from uuid import UUID

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from cron import (
    CronSchedule,
    InvalidRule,
    SolarEvent,
    SolarSchedule,
    in_words,
    oversized_steps,
    parse_rule,
)
from cron.rule import normalised
from models.action.exceptions import Except
from models.action.policy import DUE_DATE_LOOK_BACK
from models.action.rule import Excepted, Jittered, RuleModel
from models.action.schedule import Once, Schedule
from models.parsing import Reading, reading_of
from models.values import (
    Zone,
    format_instant,
    has_offset,
    one_of,
    parse_degrees,
    parse_instant,
)
from models.values.zones import in_zone


def _cron_rule(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError('write a text of five fields such as "0 7 * * 1"')
    try:
        parse_rule(value)
    except InvalidRule as error:
        raise ValueError(str(error)) from None
    return value


@lru_cache(maxsize=100_000)
def cron_schedule(rule: str, zone: str) -> CronSchedule:
    """Return the schedule of a cron rule; raises cron.InvalidRule."""
    return CronSchedule(rule, zone)


class CronModel(Jittered):
    """Due when the rule matches the wall clock of `timezone` (default: the small app's)."""

    has_years: ClassVar[bool] = True

    cron_rule: Annotated[str, BeforeValidator(_cron_rule)]
    timezone: Zone
    except_: Except = Field(None, alias="except")

    @classmethod
    def completed(cls, raw: dict[str, Any], reading: Reading, /) -> dict[str, Any]:
        """Return `raw` with the small app's zone if it has none."""
        return {"timezone": reading.default_zone, **raw}

    @property
    def zone(self) -> str:
        """The zone of its wall clock."""
        return self.timezone

    def every_occurrence(self, uid: UUID) -> CronSchedule:  # noqa: ARG002 - the same for all actions
        """Return the occurrences of the rule."""
        return cron_schedule(self.cron_rule, self.timezone)

    def resolved(self) -> Self:
        """Return the rule in numbers."""
        return super().resolved().model_copy(update={"cron_rule": normalised(self.cron_rule)})

    def words(self, zone: str) -> str:  # noqa: ARG002 - it has its own
        """Return the rule in words, as it is, and its zone."""
        rule = normalised(self.cron_rule)
        return f"{in_words(rule)} ({rule}), {self.timezone}"

    def warnings(self, zone: str) -> Iterator[str]:  # noqa: ARG002 - it has its own
        """Yield warnings about "or" where celery beat means "and", and about oversized steps.

        `*/90` minutes is no interval.
        """
        text = normalised(self.cron_rule)
        _, _, day, _, weekday = text.split(" ")
        if not day.startswith("*") and not weekday.startswith("*"):
            yield (
                f'when.cron_rule "{text}": runs when either the day of month ({day}) or '
                f"the day of week ({weekday}) matches, as in cron; celery beat requires both. "
                "Write * for one of them, or check the other in the step"
            )
        for field, item, value in oversized_steps(self.cron_rule):
            yield (
                f'when.cron_rule: the step of "{item}" exceeds the range of the {field}, so only '
                f'{value} matches; write "{value}", or an interval ("every") if that was meant'
            )


class DueDateModel(RuleModel):
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
        kept = reading.kept_due_dates
        if late and kept is not None and due_at not in kept:
            raise ValueError(f"is in the past (it is {_shown(reading.now)}); write a later one")
        return value

    @property
    def due_at(self) -> datetime:
        """The due date in UTC."""
        return parse_instant(self.due_date, self.timezone or "UTC")

    @property
    def look_back(self) -> timedelta:
        """A day."""
        return DUE_DATE_LOOK_BACK

    @property
    def zone(self) -> str | None:
        """The zone that is written, or that of a date without an offset."""
        return self.timezone

    def every_occurrence(self, uid: UUID) -> Schedule:  # noqa: ARG002 - the same for all actions
        """Return the due date."""
        return Once(self.due_at)

    def words(self, zone: str) -> str:
        """Return the due date on the clock of its own zone, else of `zone`."""
        shown_in = self.timezone or zone
        return f"once, on {in_zone(self.due_at, shown_in)}, {shown_in}"


def _shown(now: datetime | None) -> str:
    return format_instant(now) if now is not None else ""


class SolarModel(Jittered, Excepted):
    """Due at an event of the sun at a place; north and east are positive."""

    has_years: ClassVar[bool] = True

    solar: Annotated[SolarEvent, BeforeValidator(one_of(*SolarEvent))]
    lat: Annotated[float, BeforeValidator(partial(parse_degrees, most=90))]
    lon: Annotated[float, BeforeValidator(partial(parse_degrees, most=180))]

    def every_occurrence(self, uid: UUID) -> Schedule:  # noqa: ARG002 - the same for all actions
        """Return the event's instants."""
        return SolarSchedule(self.solar, self.lat, self.lon)

    def words(self, zone: str) -> str:  # noqa: ARG002 - the sun has none
        """Return the event and the place: `at sunset (48.85° N, 2.35° E)`."""
        words = self.solar.split("_")
        # Of dawn and dusk, the kind comes first.
        event = " ".join(words if self.solar is SolarEvent.SOLAR_NOON else reversed(words))
        north, east = "N" if self.lat >= 0 else "S", "E" if self.lon >= 0 else "W"
        return f"at {event} ({abs(self.lat):g}° {north}, {abs(self.lon):g}° {east})"
