"""The rule of the calendar: every second Monday, the last Friday of a month (RFC 5545)."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Self
from uuid import UUID
from zoneinfo import ZoneInfo

from dateutil.parser import isoparse
from pydantic import (
    AwareDatetime,
    BeforeValidator,
    Field,
    PlainSerializer,
    ValidationInfo,
    field_validator,
    model_validator,
)

from cron import InvalidRule, WallClock
from cron.days import NEVER
from cron.recurrence import DAILY, MONTHLY, MOST_TIMES, NAMING, YEARLY, Recurrence, read_recurrence
from cron.recurrent_days import RecurrentMinutes, day_of, recurrent_days
from models.action.exceptions import Except
from models.action.rule import Begun, Jittered
from models.action.schedule import NO_UID, ONE_SECOND, Schedule, bounded
from models.parsing import Reading, reading_of
from models.values import Zone, format_instant, parse_instant
from models.values.zones import instant_of

A_DAY = timedelta(days=1)
AS_WRITTEN = PlainSerializer(
    lambda times: times[0] if len(times) == 1 else list(times), return_type=Any
)
EXAMPLE = 'write a rule such as "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO"'
TIME_EXAMPLE = 'write a time such as "09:00", or a list of times'
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _rrule(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(EXAMPLE)
    try:
        read_recurrence(value)
    except InvalidRule as error:
        raise ValueError(str(error)) from None
    return value


def _at(value: object) -> tuple[str, ...]:
    times = [value] if isinstance(value, str) else value
    if not isinstance(times, list | tuple) or not times:
        raise ValueError(TIME_EXAMPLE)
    if len(times) > MOST_TIMES:
        raise ValueError(
            f"has {len(times)} times; write at most {MOST_TIMES}, or a cron rule, or an interval"
        )
    for time in times:
        if not isinstance(time, str) or _TIME.fullmatch(time) is None:
            raise ValueError(f"holds no time of the day in {_shown(time)}; {TIME_EXAMPLE}")
    return tuple(dict.fromkeys(times))


def _shown(value: object) -> str:
    return f'"{value[:20]}"' if isinstance(value, str) else type(value).__name__


class RecurrenceModel(Begun, Jittered):
    """Due by a rule of RFC 5545, at times of the day on the clock of `timezone`.

    The first period is that of `starting_at` (default: the action's creation), before which nothing
    is due. The times are those of `at`, or of BYHOUR and BYMINUTE in the rule.
    """

    has_years: ClassVar[bool] = True

    # Fields are read in order: an instant needs the zone.
    timezone: Zone
    rrule: Annotated[str, BeforeValidator(_rrule)]
    at: Annotated[tuple[str, ...], BeforeValidator(_at), AS_WRITTEN] = ()
    starting_at: (
        Annotated[AwareDatetime, PlainSerializer(format_instant, return_type=str)] | None
    ) = None
    except_: Except = Field(None, alias="except")

    @classmethod
    def completed(cls, raw: dict[str, Any], reading: Reading, /) -> dict[str, Any]:
        """Return `raw` with the small app's zone, if it has none."""
        return {"timezone": reading.default_zone, **raw}

    @field_validator("starting_at", mode="before")
    @classmethod
    def _in_own_zone(cls, value: object, info: ValidationInfo) -> datetime:
        zone = info.data.get("timezone") or reading_of(info).default_zone
        is_date = isinstance(value, str) and _DATE.fullmatch(value) is not None
        return parse_instant(f"{value}T00:00" if is_date else value, zone)

    @model_validator(mode="after")
    def _has_times(self, info: ValidationInfo) -> Self:
        named = self._read.times
        if named and self.at:
            raise ValueError("has times in `rrule` (BYHOUR) and in `at`; keep one of the two")
        if not named and not self.at:
            raise ValueError('has no time of the day; write it as "at": "09:00"')
        if reading_of(info).now is not None:
            self._check_that_it_occurs()
        return self

    def _check_that_it_occurs(self) -> None:
        try:
            self._minutes.check()
        except InvalidRule as error:
            raise ValueError(str(error)) from None
        if self.every_occurrence(NO_UID).next(self.begins_at - ONE_SECOND) is None:
            raise ValueError("ends before its first occurrence; write a later UNTIL")

    @property
    def _read(self) -> Recurrence:
        return read_recurrence(self.rrule)

    @property
    def times(self) -> tuple[int, ...]:
        """The minutes of the day at which it is due, ascending."""
        return self._read.times or tuple(sorted(_minute(time) for time in self.at))

    @property
    def _first(self) -> datetime:
        """The beginning, on the clock of its zone."""
        return self.begins_at.astimezone(ZoneInfo(self.timezone))

    @property
    def _minutes(self) -> RecurrentMinutes:
        return _minutes_of(self._read.text, self.times, self._first)

    @property
    def zone(self) -> str:
        """The zone of its wall clock."""
        return self.timezone

    @property
    def wall_clock(self) -> WallClock:
        """The occurrences on the clock of its zone, as if the rule had neither start nor end."""
        return WallClock(self._minutes, self.timezone)

    def every_occurrence(self, uid: UUID) -> Schedule:  # noqa: ARG002 - the same for all actions
        """Return the occurrences of the rule from `starting_at` to its end."""
        return recurrence_schedule(self._read.text, self.times, self.timezone, self.begins_at)

    def resolved(self) -> Self:
        """Return the rule in capitals."""
        return super().resolved().model_copy(update={"rrule": self._read.text})

    def words(self, zone: str) -> str:  # noqa: ARG002 - it has its own
        """Return the rule as it is, its times, its zone, and where it begins if that matters."""
        rule = self._read
        at = "" if rule.times else f" at {', '.join(sorted(self.at))}"
        is_counted = rule.interval > 1 or not rule.names_days
        begins = f", from {self._first:%a %Y-%m-%d}" if is_counted else ""
        return f"{rule.text}{at}{begins}, {self.timezone}"

    def warnings(self, zone: str) -> Iterator[str]:  # noqa: ARG002 - it has its own
        """Yield a warning about months, or years, that lack the day that the rule names.

        A rule of days of two kinds, such as Fridays that are a 13th, is meant to leave some out.
        The weekdays of a week are not of two kinds.
        """
        rule, first = self._read, self._first
        kinds = NAMING & rule.parts.keys()
        if "BYWEEKNO" in kinds:
            kinds -= {"BYDAY"}
        if len(kinds) > 1 or (rule.frequency not in {MONTHLY, YEARLY} and kinds != {"BYMONTHDAY"}):
            return
        end = _end(rule, self._minutes, self.timezone, first)
        until = NEVER if end is None else day_of(end.astimezone(ZoneInfo(self.timezone)).date())
        have_one = recurrent_days(rule.text, first.date()).periods(until)
        if not all(have_one):
            periods = "years" if rule.frequency == YEARLY else "months"
            advice = "; write BYMONTHDAY=-1, the last day, to have one in each"
            yield (
                f'when.rrule "{self.rrule}": has no date in {have_one.count(False)} of its next '
                f"{len(have_one)} {periods}{advice if _could_be_last(rule, first) else ''}"
            )


def _could_be_last(rule: Recurrence, first: datetime) -> bool:
    """Return whether the last day of a month, in place of the rule's, falls into each period."""
    days = rule.beginning(first.date()).numbers("BYMONTHDAY")
    if rule.frequency == DAILY and rule.interval > 1:
        return False
    # Without its month, a yearly rule falls into each month.
    if rule.frequency == YEARLY and "BYMONTH" not in rule.parts:
        return False
    return len(days) == 1 and days[0] > 0


@lru_cache(maxsize=100_000)
def recurrence_schedule(
    rrule: str, times: Sequence[int], zone: str, starting_at: datetime
) -> Schedule:
    """Return the occurrences of a checked rule from `starting_at` to its COUNT or UNTIL."""
    first = starting_at.astimezone(ZoneInfo(zone))
    minutes = _minutes_of(rrule, times, first)
    end = _end(read_recurrence(rrule), minutes, zone, first)
    return bounded(WallClock(minutes, zone), starting_at, end)


def _minutes_of(rrule: str, times: Sequence[int], first: datetime) -> RecurrentMinutes:
    return RecurrentMinutes(read_recurrence(rrule), times, first.date())


def _end(
    rule: Recurrence, minutes: RecurrentMinutes, zone: str, first: datetime
) -> datetime | None:
    """Return the instant before which a rule ends; None if it does not end before 2200."""
    try:
        for count in rule.numbers("COUNT"):
            last = minutes.date_time(minutes.nth(count, minutes.minute_from(first)))
            return instant_of(last, zone) + ONE_SECOND
        if "UNTIL" in rule.parts:
            return _until(rule.parts["UNTIL"], zone)
    except (ValueError, OverflowError):
        pass
    return None


def _until(text: str, zone: str) -> datetime:
    """Return the end of the day, or of the second, that UNTIL names."""
    until = isoparse(text)
    if "T" not in text:
        return instant_of(until + A_DAY, zone)
    return (instant_of(until, zone) if until.tzinfo is None else until.astimezone(UTC)) + ONE_SECOND


def _minute(time: str) -> int:
    hour, minute = time.split(":")
    return 60 * int(hour) + int(minute)
