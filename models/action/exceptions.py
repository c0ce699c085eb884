"""`except`: the dates, weekdays and calendars that a rule leaves out."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property, lru_cache
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, PlainSerializer, ValidationInfo

from cron import Blackout, InvalidRule
from cron.fields import WEEKDAY, flags_of
from models.document import Document
from models.parsing import Calendars, Reading, reading_of
from models.problems import listed, meant, raise_all, read_each, segment
from models.values import Name, parse_list

MOST_ENTRIES = 1_000
NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_YEARLY = re.compile(r"[0-9]{2}-[0-9]{2}")
# A leap year, for days of each year.
_YEAR = 2000
_DATE_EXAMPLE = (
    'write a date ("2026-12-25"), a day of each year ("12-25"), '
    'or the first and the last date ("2026-12-24/2027-01-01")'
)
_DAYS_EXAMPLE = 'write {"days": "sat,sun"}'
_NO_HOURS = (
    "leaves out whole days, no hours; write the hours that remain into a cron rule, such as "
    '"0 6-21 * * *"'
)


class Days(NamedTuple):
    """The days from the first to the last, of each year or of one; and their name."""

    name: str
    first: date
    last: date
    is_yearly: bool = False

    def hold(self, day: date) -> bool:
        """Return whether a day is among them."""
        return self.first <= (day.replace(year=_YEAR) if self.is_yearly else day) <= self.last


@dataclass(frozen=True)
class Closed:
    """The days that `except` leaves out of a rule, on the clock of `zone`.

    `of_calendars` are the days of its calendars as they were last read. `written` are its entries.
    """

    zone: str
    weekdays: tuple[int, ...]
    own: tuple[Days, ...]
    calendars: tuple[str, ...]
    of_calendars: tuple[Days, ...] = ()
    written: tuple[Any, ...] = field(default=(), compare=False)

    @cached_property
    def blackout(self) -> Blackout:
        """The closed days as a `Blackout`; raises cron.InvalidRule for an unknown zone."""
        return Blackout(self.zone, self._why)

    def _why(self, day: date) -> str | None:
        named = (one.name for one in (*self.own, *self.of_calendars) if one.hold(day))
        return next(named, NAMES[day.weekday()] if day.weekday() in self.weekdays else None)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of weekdays, then of calendars, and of days."""
        names = [", ".join(NAMES[day] for day in self.weekdays)] if self.weekdays else []
        names += [f"calendar {name}" for name in self.calendars]
        return tuple(
            dict.fromkeys([*names, *(one.name for one in (*self.own, *self.of_calendars))])
        )

    def with_calendars(self, calendars: Calendars) -> "Closed":
        """Return the closed days with those of its calendars; one that is gone closes none."""
        found = (
            days._replace(name=f"{days.name} of calendar {name}")
            for name in self.calendars
            for days in _of_calendar(tuple(map(_date_and_name, calendars.get(name, ()))))
        )
        return replace(self, of_calendars=tuple(found))


class DateException(Document):
    """Whole days: a date, a day of each year, or a range of dates with both its ends."""

    date: str
    name: Name | None = None

    @property
    def days(self) -> Days:
        """The days; raises ValueError."""
        return _days(self.date, self.name)

    def check(self, _reading: Reading) -> None:
        """Raise ValueError for what is no date."""
        _ = self.days


class DaysException(Document):
    """Weekdays, as the field of a cron rule has them."""

    days: str

    @property
    def weekdays(self) -> frozenset[int]:
        """The numbers of the weekdays, from 0 (Monday); raises ValueError."""
        try:
            flags = flags_of(WEEKDAY, self.days.lower())
        except InvalidRule as error:
            raise ValueError(f'has no days in "{segment(self.days)}": {error.problem}') from None
        return frozenset((day - 1) % len(NAMES) for day, flag in enumerate(flags) if flag)

    def check(self, _reading: Reading) -> None:
        """Raise ValueError for what is no weekday."""
        _ = self.weekdays


class CalendarException(Document):
    """The dates of a calendar of the small app, as they are when an occurrence is decided."""

    calendar: Name

    def check(self, reading: Reading) -> None:
        """Raise ValueError if there is no such calendar."""
        if not reading.tolerant and self.calendar not in reading.calendars:
            hint = meant(self.calendar, reading.calendars, "; write it into its `calendars`")
            raise ValueError(f"is not a calendar of this small app{hint}")


Entry = DateException | DaysException | CalendarException
KINDS: Mapping[str, type[Entry]] = {
    "date": DateException,
    "days": DaysException,
    "calendar": CalendarException,
}


def read_exceptions(value: object, info: ValidationInfo) -> Closed:
    """Return the exceptions of a rule, on the clock of its zone; raises all faults at once."""
    reading = reading_of(info)
    written = tuple(parse_list(value))
    entries = read_entries(written, reading)
    weekdays = {day for one in entries if isinstance(one, DaysException) for day in one.weekdays}
    return Closed(
        info.data.get("timezone") or reading.default_zone,
        tuple(sorted(weekdays)),
        tuple(one.days for one in entries if isinstance(one, DateException)),
        tuple(dict.fromkeys(one.calendar for one in entries if isinstance(one, CalendarException))),
        written=written,
    )


def read_entries(values: Sequence[object], reading: Reading) -> list[Entry]:
    """Return entries of `except`; raises ValidationError with all faults."""
    if len(values) > MOST_ENTRIES:
        raise ValueError(f"leaves out over {MOST_ENTRIES} times; write fewer, or join some")

    def read(_number: int, value: object) -> Entry:
        entry = _entry_of(value, reading)
        entry.check(reading)
        return entry

    entries, faults = read_each(enumerate(values), read)
    raise_all("except", faults)
    return entries


def _entry_of(value: object, reading: Reading) -> Entry:
    """Return one entry; raises ValueError or ValidationError."""
    if isinstance(value, str):
        return DateException(date=value)
    if not isinstance(value, Mapping):
        raise ValueError(_DATE_EXAMPLE)
    if "from" in value or "until" in value:
        raise ValueError(_NO_HOURS)
    kinds = [key for key in KINDS if key in value]
    if len(kinds) > 1:
        raise ValueError(f"has two kinds, {listed(kinds)}")
    if not kinds:
        unknown = next((f' has the unknown key "{segment(str(key))}";' for key in value), "")
        raise ValueError(f"is not an exception;{unknown} write one of {listed(KINDS)}")
    return KINDS[kinds[0]].model_validate(value, context=reading)


def _date_and_name(entry: object) -> tuple[str, str | None]:
    """Return the date of a stored entry of a calendar, and its name."""
    if isinstance(entry, Mapping):
        return str(entry["date"]), entry.get("name")
    return str(entry), None


@lru_cache(maxsize=1_000)
def _of_calendar(dates: tuple[tuple[str, str | None], ...]) -> list[Days]:
    return [_days(*one) for one in dates]


def _days(written: str, name: str | None) -> Days:
    """Return a date, a day of each year, or a range of dates; raises ValueError."""
    if _YEARLY.fullmatch(written):
        day = _date(f"{_YEAR}-{written}")
        return Days(f"{name or written} of each year", day, day, is_yearly=True)
    first, _, last = written.partition("/")
    begin, end = _date(first), _date(last or first)
    if end < begin:
        raise ValueError(f'ends before it begins; write "{last}/{first}"')
    return Days(name or written, begin, end)


def _date(text: str) -> date:
    if not _DATE.fullmatch(text):
        raise ValueError(f"is not a date; {_DATE_EXAMPLE}; for weekdays {_DAYS_EXAMPLE}")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"is not an existing date; {_DATE_EXAMPLE}") from None


Except = Annotated[
    Closed | None,
    BeforeValidator(read_exceptions),
    PlainSerializer(lambda one: one and one.written, return_type=Any),
]
