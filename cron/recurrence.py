"""Recurrence rules of RFC 5545, from daily to yearly: their text to their parts, each checked."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import lru_cache

from cron.errors import InvalidRule, quote

LONGEST_RRULE = 300
# More times a day are an interval, or a cron rule.
MOST_TIMES = 24
DAILY, WEEKLY, MONTHLY, YEARLY = "DAILY", "WEEKLY", "MONTHLY", "YEARLY"
FREQUENCIES = (DAILY, WEEKLY, MONTHLY, YEARLY)
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
# Parts that name days.
NAMING = frozenset({"BYDAY", "BYWEEKNO", "BYYEARDAY", "BYMONTHDAY"})
EXAMPLE = "write a rule such as 'FREQ=WEEKLY;INTERVAL=2;BYDAY=MO'"

_SHORTER = ("HOURLY", "MINUTELY", "SECONDLY")
_PART = re.compile(r"([A-Z]+)=([A-Z0-9,+-]+)")
_NUMBER = re.compile(r"[+-]?[0-9]{1,6}")
_WEEKDAY = re.compile(rf"([+-]?[1-9][0-9]?)?({'|'.join(WEEKDAYS)})")
_FIRST_YEAR = 1970
_UNTIL = re.compile(r"[0-9]{8}(T[0-9]{6}Z?)?")
# The least and the greatest number of a part; those below 0 count from the end, and 0 is none then.
_NUMBERS: Mapping[str, tuple[int, int]] = {
    "INTERVAL": (1, 9999),
    "COUNT": (1, 10_000),
    "BYMONTH": (1, 12),
    "BYWEEKNO": (-53, 53),
    "BYYEARDAY": (-366, 366),
    "BYMONTHDAY": (-31, 31),
    "BYSETPOS": (-366, 366),
    "BYHOUR": (0, 23),
    "BYMINUTE": (0, 59),
    "BYSECOND": (0, 0),
}
_KEYS = ("FREQ", "UNTIL", "WKST", "BYDAY", *_NUMBERS)
# What RFC 5545 does not allow, and positions in a week: BYDAY names its days.
_OUT_OF_PLACE: Mapping[str, tuple[str, ...]] = {
    DAILY: ("BYWEEKNO", "BYYEARDAY", "BYSETPOS"),
    WEEKLY: ("BYWEEKNO", "BYYEARDAY", "BYMONTHDAY", "BYSETPOS"),
    MONTHLY: ("BYWEEKNO", "BYYEARDAY"),
    YEARLY: (),
}
_BESIDE: Mapping[str, str] = {
    "DTSTART": 'write it as "starting_at"',
    "EXDATE": 'write the dates as "except"',
    "RDATE": "write the dates as due dates, in a list of rules",
    "EXRULE": 'write what it leaves out as "except"',
}


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A rule by its parts, which hold text; `text` is all of it in capitals, without `RRULE:`."""

    text: str
    parts: Mapping[str, str]

    @property
    def frequency(self) -> str:
        """One of FREQUENCIES."""
        return self.parts["FREQ"]

    @property
    def interval(self) -> int:
        """One period in so many has days, counted from the first."""
        return int(self.parts.get("INTERVAL", 1))

    @property
    def times(self) -> tuple[int, ...]:
        """The minutes of the day that the rule itself names, ascending; none: written beside it."""
        hours, minutes = self.numbers("BYHOUR"), self.numbers("BYMINUTE") or (0,)
        return tuple(sorted({60 * hour + minute for hour in hours for minute in minutes}))

    def numbers(self, key: str) -> tuple[int, ...]:
        """Return the numbers of a part, none if the rule has it not."""
        return tuple(map(int, self.parts[key].split(","))) if key in self.parts else ()

    @property
    def names_days(self) -> bool:
        """Whether the rule names its days; else they are those of its first day."""
        return bool(self.parts.keys() & NAMING)

    def beginning(self, first: date) -> "Recurrence":
        """Return the rule with the days named that RFC 5545 takes from its first day."""
        if self.names_days:
            return self
        implied = {"BYMONTHDAY": f"{first.day}"}
        if self.frequency in {DAILY, WEEKLY}:
            of_week = WEEKDAYS if self.frequency == DAILY else (WEEKDAYS[first.weekday()],)
            implied = {"BYDAY": ",".join(of_week)}
        elif self.frequency == YEARLY:
            implied["BYMONTH"] = f"{first.month}"
        return replace(self, parts={**implied, **self.parts})


def read_recurrence(text: str) -> Recurrence:
    """Return the rule that `text` writes, in any case; raises InvalidRule with what to write."""
    if not isinstance(text, str):
        raise InvalidRule("rule", f"is not text but {type(text).__name__}; {EXAMPLE}")
    if len(text) > LONGEST_RRULE:
        raise _refused(text, f"is longer than {LONGEST_RRULE} characters; write a shorter one")
    return _read(text)


@lru_cache(maxsize=2048)
def _read(text: str) -> Recurrence:
    cleaned = "".join(text.upper().split()).removeprefix("RRULE:").strip(";")
    read = Recurrence(cleaned, _parts_of(text, cleaned))
    _check_frequency(text, read)
    for key in read.parts.keys() & _NUMBERS:
        for number in read.parts[key].split(","):
            _check_number(key, number)
    if "UNTIL" in read.parts:
        _check_until(read.parts["UNTIL"])
    _check_weekdays(read)
    _check_together(read)
    return read


def _parts_of(text: str, cleaned: str) -> dict[str, str]:
    for key, remedy in _BESIDE.items():
        if key in cleaned:
            raise _refused(text, f"holds {key}; {remedy}, and the rule alone as rrule")
    parts: dict[str, str] = {}
    for part in cleaned.split(";"):
        found = _PART.fullmatch(part)
        if found is None:
            raise _refused(text, f"has {quote(part)} instead of a name and a value; {EXAMPLE}")
        key, value = found.groups()
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, 1, 0.0)[0]
            raise _refused(text, f"has the unknown part {quote(key)}; did you mean '{near}'?")
        if key in parts:
            raise _refused(text, f"has {key} twice; write it once")
        parts[key] = value
    return parts


def _check_frequency(text: str, read: Recurrence) -> None:
    frequency = read.parts.get("FREQ")
    if frequency in FREQUENCIES:
        return
    if frequency is None:
        raise _refused(text, f"has no FREQ; {EXAMPLE}")
    if frequency in _SHORTER:
        problem = (
            'is shorter than a day; write an interval, such as {"every": "PT2H"}, or a cron rule'
        )
    else:
        problem = f"is unknown; write one of {', '.join(FREQUENCIES)}"
    raise InvalidRule("FREQ", f"{quote(frequency)} {problem}")


def _check_number(key: str, text: str) -> None:
    """Raise InvalidRule for a number out of range, which dateutil lets pass."""
    low, high = _NUMBERS[key]
    if _NUMBER.fullmatch(text) and low <= int(text) <= high and (int(text) or low == 0):
        return
    if key == "BYSECOND":
        problem = f"{quote(text)} is no full minute; write BYSECOND=0, or leave it out"
        raise InvalidRule(key, problem)
    allowed = f"{max(low, 1) if low else 0} to {high}"
    back = f", or {low} to -1 from the end" if low < 0 else ""
    raise InvalidRule(key, f"{quote(text)} is out of range; write {allowed}{back}")


def _check_until(text: str) -> None:
    try:
        if _UNTIL.fullmatch(text) and datetime.fromisoformat(text).year >= _FIRST_YEAR:
            return
    except ValueError:
        pass
    remedy = "write a date such as '20271231', or a time such as '20271231T180000'"
    raise InvalidRule("UNTIL", f"{quote(text)} is not a date or a time from 1970 on; {remedy}")


def _check_together(read: Recurrence) -> None:
    """Raise InvalidRule for parts that are valid alone, and not beside each other."""
    parts = read.parts
    for key in _OUT_OF_PLACE[read.frequency]:
        if key in parts:
            fitting = " or ".join(one for one in FREQUENCIES if key not in _OUT_OF_PLACE[one])
            problem = f"does not go with FREQ={read.frequency}; remove it, or write FREQ={fitting}"
            raise InvalidRule(key, problem)
    if len(read.times) > MOST_TIMES:
        problem = f"{len(read.times)} times a day are named; write at most {MOST_TIMES}"
        raise InvalidRule("BYHOUR", f"{problem}, or a cron rule")
    if "BYSETPOS" in parts and len(read.times) > 1:
        raise InvalidRule("BYSETPOS", 'picks days; write the times beside the rule, as "at"')
    if "COUNT" in parts and "UNTIL" in parts:
        raise InvalidRule("COUNT", "does not go with UNTIL; keep one of the two")
    if "BYMINUTE" in parts and "BYHOUR" not in parts:
        raise InvalidRule("BYMINUTE", "needs BYHOUR beside it; write both")


def _check_weekdays(read: Recurrence) -> None:
    days = read.parts["BYDAY"].split(",") if "BYDAY" in read.parts else []
    for key, values in (("BYDAY", days), ("WKST", [read.parts.get("WKST", "MO")])):
        wrong = next((one for one in values if not _WEEKDAY.fullmatch(one)), None)
        if wrong is not None:
            problem = f"{quote(wrong)} is no weekday; write one of {', '.join(WEEKDAYS)}"
            raise InvalidRule(key, problem)
    numbered = [day for day in days if day not in WEEKDAYS]
    if numbered and (read.frequency in {DAILY, WEEKLY} or "BYWEEKNO" in read.parts):
        day = numbered[0]
        problem = f"{quote(day)} is a weekday of a month or a year; write '{day[-2:]}'"
        raise InvalidRule("BYDAY", problem)
    if 0 < len(numbered) < len(days):
        raise InvalidRule("BYDAY", "has days with and without a number; write a rule for each")


def _refused(text: str, problem: str) -> InvalidRule:
    return InvalidRule("rule", f"{quote(text)} {problem}")
