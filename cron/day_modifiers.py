"""The modifiers of days that depend on the shape of a month: `L`, `W` and `#`.

croniter, cronsim and Quartz write them like this; weekdays keep cron's numbers. A modifier is one
item of a list, beside plain values.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from cron.errors import InvalidRule, quote
from cron.fields import DAY, WEEKDAY, Field, flags_of, number_of

LAST = -1

_SMALL_L = re.compile(r"(?<![a-z])l|l(?![a-z])")

_DAY_MODIFIER = re.compile(r"(?:l(?:-(\d{1,9}))?|(\d{1,9}))(w?)", re.ASCII)
_WEEKDAY_MODIFIER = re.compile(
    r"([a-z]{3}|\d{1,9})(?:#(\d{1,9}|l)|l)|l([a-z]{3}|\d{1,9})", re.ASCII
)


class DayOfMonth(NamedTuple):
    """A day of each month, from 1, or so many days before the last if `is_from_last`.

    `is_nearest`: instead of it the nearest day from Monday to Friday of the same month.
    """

    number: int
    is_from_last: bool
    is_nearest: bool

    def day_in(self, length: int, first_weekday: int) -> int | None:
        """Return the day in a month of `length` days, whose first is a weekday (0 is Sunday)."""
        day = length - self.number if self.is_from_last else self.number
        if not 1 <= day <= length:
            return None
        return _nearest(day, length, first_weekday) if self.is_nearest else day


class NthWeekday(NamedTuple):
    """The nth weekday (0 is Sunday) of each month, from 1, or the last one (LAST)."""

    weekday: int
    nth: int

    def day_in(self, length: int, first_weekday: int) -> int | None:
        """Return the day in a month of `length` days, whose first is a weekday (0 is Sunday)."""
        first = 1 + (self.weekday - first_weekday) % 7
        if self.nth == LAST:
            return first + (length - first) // 7 * 7
        day = first + (self.nth - 1) * 7
        return day if day <= length else None


DayModifier = DayOfMonth | NthWeekday


class Parted(NamedTuple):
    """A field of days: the flags of its plain items, and its modifiers."""

    flags: bytes
    modifiers: tuple[DayModifier, ...]


@lru_cache(maxsize=1024)
def parted(field: Field, text: str) -> Parted:
    """Return the plain items of a field, and its modifiers; raises InvalidRule."""
    plain, modifiers = [], []
    for item in text.lower().split(","):
        modifier = modifier_of(field, item)
        if modifier is None:
            plain.append(item)
        else:
            modifiers.append(modifier)
    flags = flags_of(field, ",".join(plain)) if plain else bytes(field.high + 1)
    return Parted(flags, tuple(dict.fromkeys(modifiers)))


def modifier_of(field: Field, item: str) -> DayModifier | None:
    """Return the modifier that an item writes, None for a plain item; raises InvalidRule."""
    if field is DAY:
        return _day_modifier(item.lower())
    return _weekday_modifier(item.lower()) if field is WEEKDAY else None


def with_capitals(field: Field, text: str) -> str:
    """Return a field in lower case with its modifiers as capitals: a small L looks like a one."""
    if field is DAY:
        items = text.split(",")
        return ",".join(one.upper() if _DAY_MODIFIER.fullmatch(one) else one for one in items)
    return _SMALL_L.sub("L", text) if field is WEEKDAY else text


def _day_modifier(item: str) -> DayOfMonth | None:
    found = _DAY_MODIFIER.fullmatch(item)
    if found is None or item.isdigit():
        return None
    back, number, nearest = found.groups()
    if number is not None:
        return DayOfMonth(number_of(DAY, number), is_from_last=False, is_nearest=True)
    if back is not None and int(back) > DAY.high - 1:
        problem = f"{quote(item)} is before every month's first day; write 'L-30' or less"
        raise InvalidRule(DAY.name, problem)
    return DayOfMonth(int(back or 0), is_from_last=True, is_nearest=bool(nearest))


def _weekday_modifier(item: str) -> NthWeekday | None:
    found = _WEEKDAY_MODIFIER.fullmatch(item)
    if found is None:
        return None
    named, nth, last = found.groups()
    weekday = number_of(WEEKDAY, named or last) % 7
    if nth in {None, "l"}:
        return NthWeekday(weekday, LAST)
    if not 1 <= int(nth) <= 5:
        text = f"{quote(item)} names no weekday of a month; write '{named}#1' to '{named}#5'"
        raise InvalidRule(WEEKDAY.name, text)
    return NthWeekday(weekday, int(nth))


def _nearest(day: int, length: int, first_weekday: int) -> int:
    """Return the nearest day from Monday to Friday, which never leaves the month."""
    match (first_weekday + day - 1) % 7:
        case 6:
            return day - 1 if day > 1 else day + 2
        case 0:
            return day + 1 if day < length else day - 2
    return day
