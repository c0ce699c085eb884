"""`except`: the dates, times and calendars that a rule leaves out."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import InitErrorDetails

from cron import Blackout, InvalidRule, Span, Window, YearlyDay, blackout
from cron.blackout import DAY_MINUTES, WEEK
from cron.days import MONTH_LENGTHS
from cron.fields import WEEKDAY, flags_of
from models.document import Document
from models.parsing import Reading, reading_of
from models.problems import line_error, line_errors, listed, nearest, raise_all, segment
from models.values import Name, format_instant, parse_instant, parse_list
from models.values.zones import instant_of

MOST_ENTRIES = 1_000
# Each window closes a part of a day, so a search ahead may meet all windows on every day.
MOST_WINDOWS = 10
A_DAY = timedelta(days=1)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_YEARLY = re.compile(r"([0-9]{2})-([0-9]{2})")
_CLOCK = re.compile(r"([01][0-9]|2[0-4]):([0-5][0-9])")
_DATE_EXAMPLE = (
    'write a date ("2026-12-25"), a day of each year ("12-25"), '
    'or the first and the last date ("2026-12-24/2027-01-01")'
)
_HOURS_EXAMPLE = 'write a time such as "22:00", or an instant such as "2026-12-24T18:00"'

Part = Span | YearlyDay | Window


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


class DateException(Document):
    """Whole days: a date, a day of each year, or a range of dates with both its ends."""

    date: str
    name: Name | None = None

    def parts(self, zone: str, _reading: Reading) -> tuple[Part, ...]:
        """Return the closed days; raises ValueError."""
        yearly = _YEARLY.fullmatch(self.date)
        if yearly is not None:
            return (_yearly(int(yearly[1]), int(yearly[2])),)
        first, _, last = self.date.partition("/")
        begin, end = _date(first), _date(last or first)
        if end < begin:
            raise ValueError(f'ends before it begins; write "{last}/{first}"')
        since, until = _midnight(begin, zone), _midnight(end + A_DAY, zone)
        return (Span(since, until, self.name or self.date),)


class HoursException(Document):
    """[from, until): instants, or times of the day that repeat on `days` (all by default)."""

    from_: str | None = Field(None, alias="from")
    until: str | None = None
    days: str | None = None
    name: Name | None = None

    def parts(self, zone: str, _reading: Reading) -> tuple[Part, ...]:
        """Return the closed time; raises ValueError."""
        texts = (self.from_, self.until)
        if any(text is not None and "T" in text for text in texts):
            return (self._span(zone),)
        if self.days is None and None in texts:
            raise ValueError('needs "from" and "until", or "days"')
        first = _minute(self.from_ or "00:00")
        until = _minute(self.until or "24:00")
        if first in (DAY_MINUTES, until):
            raise ValueError('is empty; write a later "until"')
        until += DAY_MINUTES if until < first else 0
        return (Window(_weekdays(self.days), first, until),)

    def _span(self, zone: str) -> Span:
        if self.from_ is None or self.until is None or self.days is not None:
            raise ValueError('has an instant; write both "from" and "until", and no "days"')
        since, until = parse_instant(self.from_, zone), parse_instant(self.until, zone)
        if until <= since:
            raise ValueError('ends before it begins; write a later "until"')
        name = self.name or f"{format_instant(since)} to {format_instant(until)}"
        return Span(since, until, name)


class CalendarException(Document):
    """The entries of a calendar of the small app."""

    calendar: Name

    def parts(self, zone: str, reading: Reading) -> tuple[Part, ...]:
        """Return the entries of the calendar; raises ValueError if there is no such calendar."""
        entries = reading.calendars.get(self.calendar)
        if entries is None and reading.tolerant:
            return ()
        if entries is None:
            near = nearest(self.calendar, reading.calendars)
            hint = f'did you mean "{near}"?' if near else "write it into its `calendars`"
            raise ValueError(f"is not a calendar of this small app; {hint}")
        return tuple(part for entry in entries for part in entry_of(entry).parts(zone, reading))


KINDS: Mapping[str, type[DateException] | type[HoursException] | type[CalendarException]] = {
    "date": DateException,
    "from": HoursException,
    "until": HoursException,
    "days": HoursException,
    "calendar": CalendarException,
}
Entry = DateException | HoursException | CalendarException


@dataclass(frozen=True, slots=True)
class Exceptions:
    """The entries of `except` as they were written, and the times that they close.

    `written` is None in a plan, which keeps the closed times in place of names of calendars.
    """

    written: tuple[Any, ...] | None
    closed: Closed

    @property
    def json(self) -> Any:
        """The entries as JSON, or the closed times of a plan."""
        return (
            _CLOSED.dump_python(self.closed, mode="json") if self.written is None else self.written
        )


def read_exceptions(value: object, info: ValidationInfo) -> Exceptions:
    """Return the exceptions of a rule, on the clock of its zone; raises all faults at once."""
    reading = reading_of(info)
    if reading.tolerant and isinstance(value, Mapping):
        return Exceptions(None, _CLOSED.validate_python(value))
    zone = info.data.get("timezone") or reading.default_zone
    entries = parse_list(value)
    parts = read_entries(entries, zone, reading)
    return Exceptions(tuple(entries), closed_by(zone, parts))


def read_entries(entries: Any, zone: str, reading: Reading) -> list[Part]:
    """Return the closed times of a list of entries; raises ValidationError with all faults."""
    if len(entries) > MOST_ENTRIES:
        raise ValueError(too_many_exceptions())
    parts: list[Part] = []
    faults: list[InitErrorDetails] = []
    for number, entry in enumerate(entries):
        try:
            parts += entry_of(entry, reading).parts(zone, reading)
        except ValidationError as error:
            faults += line_errors(error, under=(number,))
        except ValueError as error:
            faults.append(line_error((number,), entry, str(error)))
        if len(parts) > MOST_ENTRIES:
            raise ValueError(too_many_exceptions())
    raise_all("except", faults)
    if len([one for one in parts if isinstance(one, Window)]) > MOST_WINDOWS:
        raise ValueError(f"closes more than {MOST_WINDOWS} times of the day; join some")
    return parts


def work_of(rule: object) -> int:
    """Return what the exceptions of an unread rule cost, counted in dates.

    An entry that is an object counts as 50 dates: times of the day are searched one by one, and a
    calendar holds many dates.
    """
    entries = rule.get("except") if isinstance(rule, Mapping) else None
    if not isinstance(entries, list | tuple):
        return 0
    return sum(1 if isinstance(one, str) else MOST_ENTRIES // 20 for one in entries)


def too_many_exceptions() -> str:
    """Return the remedy for too many exceptions."""
    return f"leaves out over {MOST_ENTRIES} times; write fewer, or join some"


def entry_of(value: object, reading: Reading | None = None) -> Entry:
    """Return one entry; raises ValueError or ValidationError."""
    if isinstance(value, str):
        return DateException(date=value)
    if not isinstance(value, Mapping):
        raise ValueError(_DATE_EXAMPLE)
    kinds = {KINDS[key] for key in KINDS if key in value}
    if len(kinds) > 1:
        raise ValueError(f"has two kinds, {listed([key for key in KINDS if key in value])}")
    if not kinds:
        unknown = next((f' has the unknown key "{segment(str(key))}";' for key in value), "")
        raise ValueError(f"is not an exception;{unknown} write one of {listed(KINDS)}")
    return kinds.pop().model_validate(value, context=reading)


def closed_by(zone: str, parts: list[Part]) -> Closed:
    """Return the closed times of these parts, each once and in order."""
    return Closed(
        zone,
        spans=tuple(sorted({one for one in parts if isinstance(one, Span)})),
        yearly=tuple(sorted({one for one in parts if isinstance(one, YearlyDay)})),
        windows=tuple(sorted({one for one in parts if isinstance(one, Window)})),
    )


def _date(text: str) -> date:
    if _DATE.fullmatch(text):
        try:
            found = date.fromisoformat(text)
        except ValueError:
            raise ValueError(f"is not an existing date; {_DATE_EXAMPLE}") from None
        if 1970 <= found.year < 2199:
            return found
        raise ValueError("is outside the years 1970 to 2198; write a date within them")
    raise ValueError(f"is not a date; {_DATE_EXAMPLE}")


def _yearly(month: int, day: int) -> YearlyDay:
    if not (1 <= month <= 12 and 1 <= day <= MONTH_LENGTHS[month]):
        raise ValueError('is not a day of the year; write month and day, such as "12-25"')
    return YearlyDay(month, day)


def _midnight(day: date, zone: str) -> datetime:
    return instant_of(datetime(day.year, day.month, day.day), zone)  # noqa: DTZ001 - a wall clock


def _minute(text: str) -> int:
    found = _CLOCK.fullmatch(text)
    minute = 60 * int(found[1]) + int(found[2]) if found else DAY_MINUTES + 1
    if minute > DAY_MINUTES:
        raise ValueError(f'has no time of the day in "{segment(text)}"; {_HOURS_EXAMPLE}')
    return minute


def _weekdays(text: str | None) -> tuple[int, ...]:
    """Return the days of a cron field, Monday as 0; all for None."""
    if text is None:
        return tuple(range(WEEK))
    try:
        flags = flags_of(WEEKDAY, text.lower())
    except InvalidRule as error:
        raise ValueError(f'has no days in "{segment(text)}": {error.problem}') from None
    return tuple(sorted({(day - 1) % WEEK for day, flag in enumerate(flags) if flag}))


Except = Annotated[
    Exceptions | None,
    BeforeValidator(read_exceptions),
    PlainSerializer(lambda one: None if one is None else one.json, return_type=Any),
]
_CLOSED: TypeAdapter[Closed] = TypeAdapter(Closed)
