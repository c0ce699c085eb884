"""`except`: the dates, weekdays and calendars that a rule leaves out."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property, lru_cache, partial
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, ValidationInfo
from pydantic_core import InitErrorDetails

from cron import Blackout, InvalidRule
from cron.fields import WEEKDAY, flags_of
from models.document import Document
from models.hints import listed, meant, segment
from models.parsing import Calendars, Reading, reading_of
from models.problems import line_error, raise_all, read_each
from models.values import Name, parse_list

MOST_ENTRIES = 1_000
KINDS = ("date", "days", "calendar")
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


def _weekdays(value: object) -> frozenset[int]:
    """Return the numbers of weekdays, from 0 (Monday), as the field of a cron rule has them."""
    try:
        flags = flags_of(WEEKDAY, str(value).lower())
    except InvalidRule as error:
        raise ValueError(f'has no days in "{segment(str(value))}": {error.problem}') from None
    return frozenset((day - 1) % len(NAMES) for day, flag in enumerate(flags) if flag)


def _calendar(name: str, info: ValidationInfo) -> str:
    reading = reading_of(info)
    if reading.tolerant or name in reading.calendars:
        return name
    hint = meant(name, reading.calendars, "; write it into its `calendars`")
    raise ValueError(f"is not a calendar of this small app{hint}")


class EntryModel(Document):
    """An entry of `except`: days, weekdays, or a calendar of the small app.

    A `date` is one, a day of each year, or a range of dates with both its ends. The dates of a
    calendar are read when an occurrence is decided.
    """

    date: Annotated[str, AfterValidator(lambda text: _days(text, None) and text)] | None = None
    name: Name | None = None
    days: Annotated[frozenset[int], BeforeValidator(_weekdays)] = frozenset()
    calendar: Annotated[Name, AfterValidator(_calendar)] | None = None

    @classmethod
    def contradictions(cls, raw: Mapping[str, Any], _reading: Reading, /) -> list[InitErrorDetails]:
        """Return the fault of an entry that is not exactly one of its kinds."""
        if sum(key in raw for key in KINDS) == 1:
            return []
        return [line_error((), dict(raw), f"write one of {listed(KINDS)}, and only one")]


def read_exceptions(value: object, info: ValidationInfo) -> Closed:
    """Return the exceptions of a rule, on the clock of its zone; raises all faults at once."""
    reading = reading_of(info)
    written = tuple(parse_list(value))
    entries = read_entries(written, reading)
    calendars = dict.fromkeys(one.calendar for one in entries if one.calendar is not None)
    return Closed(
        info.data.get("timezone") or reading.default_zone,
        tuple(sorted({day for one in entries for day in one.days})),
        tuple(_days(one.date, one.name) for one in entries if one.date is not None),
        tuple(calendars),
        written=written,
    )


def read_entries(values: Sequence[object], reading: Reading) -> list[EntryModel]:
    """Return entries of `except`; raises ValidationError with all faults."""
    if len(values) > MOST_ENTRIES:
        raise ValueError(f"leaves out over {MOST_ENTRIES} times; write fewer, or join some")
    entries, faults = read_each(enumerate(values), partial(_entry_of, reading))
    raise_all("except", faults)
    return entries


def _entry_of(reading: Reading, _number: int, value: object) -> EntryModel:
    """Return one entry; raises ValueError or ValidationError."""
    if isinstance(value, str):
        _days(value, None)
        return EntryModel(date=value)
    if not isinstance(value, Mapping):
        raise ValueError(_DATE_EXAMPLE)
    return EntryModel.model_validate(value, context=reading)


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
