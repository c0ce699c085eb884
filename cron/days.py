"""Which local days match: one flag per day, for each of the 14 kinds of year."""

import calendar
from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from cron.day_modifiers import DayModifier

# Local days are counted from here. The wall clock may be a day behind or ahead of UTC, so the
# calendar has one year more than 1970 to 2199 at either end.
ORIGIN = date(1969, 1, 1)
YEARS = range(1969, 2201)

# The most days of each month, by month number.
MONTH_LENGTHS = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

# Beyond every local day and minute, so that arithmetic with it stays out of range.
NEVER = 1 << 40

_LENGTHS = tuple(366 if calendar.isleap(year) else 365 for year in YEARS)
STARTS = (0, *accumulate(_LENGTHS))
YEAR_OF = b"".join(bytes((index,)) * length for index, length in enumerate(_LENGTHS))
_KINDS = tuple((calendar.isleap(year), date(year, 1, 1).isoweekday() % 7) for year in YEARS)


class DayFields(NamedTuple):
    """The three day fields of a rule, as flags; `either`: one matching kind of day is enough.

    The modifiers are those that stand in the day of month, and in the day of week.
    """

    days: bytes
    months: bytes
    weekdays: bytes
    either: bool
    day_modifiers: tuple[DayModifier, ...] = ()
    weekday_modifiers: tuple[DayModifier, ...] = ()


class Days:
    """The matching days of 1969 to 2200, searched in at most one step per year."""

    __slots__ = ("_before", "_years")

    _years: Sequence[bytes] | dict[int, bytes]

    def __init__(self, fields: DayFields) -> None:
        kinds = {kind: _year_flags(fields, *kind) for kind in dict.fromkeys(_KINDS)}
        self._years = tuple(kinds[kind] for kind in _KINDS)
        self._before = (0, *accumulate(flags.count(1) for flags in self._years))

    def at_or_after(self, day: int) -> int:
        """Return the first matching day from `day` on, or NEVER."""
        index = YEAR_OF[day]
        found = self._years[index].find(1, day - STARTS[index])
        while found < 0:
            index += 1
            if index == len(_LENGTHS):
                return NEVER
            found = self._years[index].find(1)
        return STARTS[index] + found

    def at_or_before(self, day: int) -> int:
        """Return the last matching day up to `day`, or -NEVER."""
        index = YEAR_OF[day]
        found = self._years[index].rfind(1, 0, day - STARTS[index] + 1)
        while found < 0:
            if index == 0:
                return -NEVER
            index -= 1
            found = self._years[index].rfind(1)
        return STARTS[index] + found

    def matches(self, day: int) -> bool:
        """Return whether `day` matches."""
        index = YEAR_OF[day]
        return self._years[index][day - STARTS[index]] == 1

    def count_before(self, day: int) -> int:
        """Return how many days match in [ORIGIN, `day`)."""
        index = YEAR_OF[day]
        return self._before[index] + self._years[index].count(1, 0, day - STARTS[index])


@lru_cache(maxsize=1024)
def days_of(fields: DayFields) -> Days:
    """Return the matching days, shared by all rules with the same day fields."""
    return Days(fields)


def _year_flags(fields: DayFields, is_leap: bool, first_weekday: int) -> bytes:
    lengths = [*MONTH_LENGTHS[1:]]
    lengths[1] -= not is_leap
    size = sum(lengths)
    inside = _number(b"".join(fields.months[m : m + 1] * n for m, n in enumerate(lengths, 1)))
    of_month = _number(b"".join(fields.days[1 : n + 1] for n in lengths))
    of_week = _number((fields.weekdays * 54)[first_weekday : first_weekday + size])
    if fields.day_modifiers or fields.weekday_modifiers:
        of_month |= _number(_modified(fields.day_modifiers, lengths, first_weekday))
        of_week |= _number(_modified(fields.weekday_modifiers, lengths, first_weekday))
    matching = of_month | of_week if fields.either else of_month & of_week
    return (inside & matching).to_bytes(size, "little")


def _modified(
    modifiers: Sequence[DayModifier], lengths: Sequence[int], first_weekday: int
) -> bytes:
    """Return the flags of the days of a year that modifiers stand for."""
    flags = bytearray(sum(lengths))
    start = 0
    for length in lengths:
        for modifier in modifiers:
            day = modifier.day_in(length, (first_weekday + start) % 7)
            if day is not None:
                flags[start + day - 1] = 1
        start += length
    return bytes(flags)


def _number(flags: bytes) -> int:
    """Return the flags as one number, on which `&` and `|` work for a whole year at once."""
    return int.from_bytes(flags, "little")
