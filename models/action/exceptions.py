"""`except`: the dates, weekdays and calendars that a rule leaves out."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, ValidationError, ValidationInfo
from pydantic_core import InitErrorDetails

from cron import Blackout, InvalidRule, Span, YearlyDay, blackout
from cron.blackout import NAMES
from cron.days import MONTH_LENGTHS
from cron.fields import WEEKDAY, flags_of
from models.document import Document
from models.parsing import Calendars, Reading, reading_of
from models.problems import line_error, line_errors, listed, meant, raise_all, segment
from models.values import Name, parse_list
from models.values.zones import instant_of

MOST_ENTRIES = 1_000
A_DAY = timedelta(days=1)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_YEARLY = re.compile(r"([0-9]{2})-([0-9]{2})")
_DATE_EXAMPLE = (
    'write a date ("2026-12-25"), a day of each year ("12-25"), '
    'or the first and the last date ("2026-12-24/2027-01-01")'
)
_DAYS_EXAMPLE = 'write {"days": "sat,sun"}'
_NO_HOURS = (
    "leaves out whole days, no hours; write the hours that remain into a cron rule, such as "
    '"0 6-21 * * *"'
)

# A span of dates, a day of each year, or the number of a weekday (0 is Monday).
Part = Span | YearlyDay | int


@dataclass(frozen=True, slots=True)
class Closed:
    """The days that `except` leaves out of a rule, on the clock of `zone`.

    The days of `calendars` are among them where they were read; see `Exceptions`.
    """

    zone: str
    spans: tuple[Span, ...] = ()
    yearly: tuple[YearlyDay, ...] = ()
    weekdays: tuple[int, ...] = ()
    calendars: tuple[str, ...] = ()

    @property
    def blackout(self) -> Blackout:
        """The closed times as a `Blackout`; raises cron.InvalidRule for an unknown zone."""
        return blackout(self.zone, self.spans, self.yearly, self.weekdays)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of weekdays, then of calendars, days of each year, and dates."""
        names = [", ".join(NAMES[day] for day in self.weekdays)] if self.weekdays else []
        names += [f"calendar {name}" for name in self.calendars]
        names += [one.name for one in self.yearly]
        return tuple(dict.fromkeys([*names, *(one.name for one in self.spans)]))

    def with_calendars(self, calendars: Calendars) -> "Closed":
        """Return the closed days with those of its calendars; one that is gone closes none."""
        dates = ((name, _dates_of(calendars.get(name, ()))) for name in self.calendars)
        return _joined(self, tuple(dates))


class DateException(Document):
    """Whole days: a date, a day of each year, or a range of dates with both its ends."""

    date: str
    name: Name | None = None

    def parts(self, zone: str) -> tuple[Part, ...]:
        """Return the closed days; raises ValueError."""
        return (_days(self.date, self.name, zone),)


class DaysException(Document):
    """Weekdays, as the field of a cron rule has them."""

    days: str

    def parts(self, _zone: str) -> tuple[Part, ...]:
        """Return the numbers of the weekdays; raises ValueError."""
        try:
            flags = flags_of(WEEKDAY, self.days.lower())
        except InvalidRule as error:
            raise ValueError(f'has no days in "{segment(self.days)}": {error.problem}') from None
        return tuple(sorted({(day - 1) % len(NAMES) for day, flag in enumerate(flags) if flag}))


class CalendarException(Document):
    """The dates of a calendar of the small app, as they are when an occurrence is decided."""

    calendar: Name

    def parts(self, _zone: str) -> tuple[Part, ...]:
        """Return nothing: its dates are read when it is decided."""
        return ()

    def check(self, calendars: Calendars) -> None:
        """Raise ValueError if there is no such calendar."""
        if self.calendar not in calendars:
            hint = meant(self.calendar, calendars, "; write it into its `calendars`")
            raise ValueError(f"is not a calendar of this small app{hint}")


Entry = DateException | DaysException | CalendarException
KINDS: Mapping[str, type[Entry]] = {
    "date": DateException,
    "days": DaysException,
    "calendar": CalendarException,
}


@dataclass(frozen=True, slots=True)
class Exceptions:
    """The entries of `except` as they were written, and the days that they close.

    `own` are without the dates of calendars; `closed` has these, too, where they were read.
    """

    written: tuple[Any, ...]
    own: Closed
    closed: Closed


def read_exceptions(value: object, info: ValidationInfo) -> Exceptions:
    """Return the exceptions of a rule, on the clock of its zone; raises all faults at once."""
    reading = reading_of(info)
    zone = info.data.get("timezone") or reading.default_zone
    written = tuple(parse_list(value))
    entries, parts = read_entries(written, zone, reading)
    calendars = dict.fromkeys(one.calendar for one in entries if isinstance(one, CalendarException))
    own = closed_by(zone, parts, tuple(calendars))
    return Exceptions(written, own, own)


def read_entries(
    values: Sequence[object], zone: str, reading: Reading
) -> tuple[list[Entry], list[Part]]:
    """Return entries and the days that they close; raises ValidationError with all faults."""
    if len(values) > MOST_ENTRIES:
        raise ValueError(f"leaves out over {MOST_ENTRIES} times; write fewer, or join some")
    entries: list[Entry] = []
    parts: list[Part] = []
    faults: list[InitErrorDetails] = []
    for number, value in enumerate(values):
        try:
            entry = entry_of(value, reading)
            if isinstance(entry, CalendarException) and not reading.tolerant:
                entry.check(reading.calendars)
            parts += entry.parts(zone)
            entries.append(entry)
        except ValidationError as error:
            faults += line_errors(error, under=(number,))
        except ValueError as error:
            faults.append(line_error((number,), value, str(error)))
    raise_all("except", faults)
    return entries, parts


def entry_of(value: object, reading: Reading | None = None) -> Entry:
    """Return one entry; raises ValueError or ValidationError."""
    if isinstance(value, str):
        return DateException(date=value)
    if not isinstance(value, Mapping):
        raise ValueError(_DATE_EXAMPLE)
    if "from" in value or "until" in value:
        raise ValueError(_NO_HOURS)
    kinds = {KINDS[key] for key in KINDS if key in value}
    if len(kinds) > 1:
        raise ValueError(f"has two kinds, {listed([key for key in KINDS if key in value])}")
    if not kinds:
        unknown = next((f' has the unknown key "{segment(str(key))}";' for key in value), "")
        raise ValueError(f"is not an exception;{unknown} write one of {listed(KINDS)}")
    return kinds.pop().model_validate(value, context=reading)


def closed_by(zone: str, parts: Iterable[Part], calendars: tuple[str, ...] = ()) -> Closed:
    """Return the closed days of these parts, each once and in order."""
    found = set(parts)
    return Closed(
        zone,
        spans=tuple(sorted(one for one in found if isinstance(one, Span))),
        yearly=tuple(sorted(one for one in found if isinstance(one, YearlyDay))),
        weekdays=tuple(sorted(one for one in found if isinstance(one, int))),
        calendars=calendars,
    )


_Dates = tuple[tuple[str, str | None], ...]


def _dates_of(entries: Sequence[object]) -> _Dates:
    """Return the dates of a calendar's entries, with their names."""
    return tuple(
        (str(one["date"]), one.get("name")) if isinstance(one, Mapping) else (str(one), None)
        for one in entries
    )


@lru_cache(maxsize=1_000)
def _joined(own: Closed, calendars: tuple[tuple[str, _Dates], ...]) -> Closed:
    parts = [
        _of_calendar(_days(written, its_name, own.zone), name)
        for name, dates in calendars
        for written, its_name in dates
    ]
    return closed_by(own.zone, [*own.spans, *own.yearly, *own.weekdays, *parts], own.calendars)


def _of_calendar(part: Span | YearlyDay, calendar: str) -> Part:
    if isinstance(part, YearlyDay):
        return part._replace(calendar=calendar)
    return part._replace(name=f"{part.name} of calendar {calendar}")


def _days(written: str, name: str | None, zone: str) -> Span | YearlyDay:
    """Return a date, a day of each year, or a range of dates; raises ValueError."""
    yearly = _YEARLY.fullmatch(written)
    if yearly is not None:
        return _yearly(int(yearly[1]), int(yearly[2]))
    first, _, last = written.partition("/")
    begin, end = _date(first), _date(last or first)
    if end < begin:
        raise ValueError(f'ends before it begins; write "{last}/{first}"')
    return Span(_midnight(begin, zone), _midnight(end + A_DAY, zone), name or written)


def _date(text: str) -> date:
    if _DATE.fullmatch(text):
        try:
            found = date.fromisoformat(text)
        except ValueError:
            raise ValueError(f"is not an existing date; {_DATE_EXAMPLE}") from None
        if 1970 <= found.year < 2199:
            return found
        raise ValueError("is outside the years 1970 to 2198; write a date within them")
    raise ValueError(f"is not a date; {_DATE_EXAMPLE}; for weekdays {_DAYS_EXAMPLE}")


def _yearly(month: int, day: int) -> YearlyDay:
    if not (1 <= month <= 12 and 1 <= day <= MONTH_LENGTHS[month]):
        raise ValueError('is not a day of the year; write month and day, such as "12-25"')
    return YearlyDay(month, day)


def _midnight(day: date, zone: str) -> datetime:
    return instant_of(datetime(day.year, day.month, day.day), zone)  # noqa: DTZ001 - a wall clock


Except = Annotated[
    Exceptions | None,
    BeforeValidator(read_exceptions),
    PlainSerializer(lambda one: one and one.written, return_type=Any),
]
