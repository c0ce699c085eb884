"""The text of a recurrence rule to its parts, each checked: RFC 5545, section 3.3.10."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from cron.errors import InvalidRule, quote
from cron.intervals import interval_of

LONGEST_RRULE = 300
MOST_COUNT = 10_000
# More times a day are an interval, or a cron rule.
MOST_TIMES = 24
DAILY, WEEKLY, MONTHLY, YEARLY = "DAILY", "WEEKLY", "MONTHLY", "YEARLY"
FREQUENCIES = (DAILY, WEEKLY, MONTHLY, YEARLY)
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
EXAMPLE = "write a rule such as 'FREQ=WEEKLY;INTERVAL=2;BYDAY=MO'"
# The days of a period, before BYSETPOS picks some.
OF_DAYS = ("BYMONTH", "BYWEEKNO", "BYYEARDAY", "BYMONTHDAY", "BYDAY")

_SHORTER_S = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}
_ALLOWED = re.compile(r"[A-Z0-9=;,:+-]*")
_PART = re.compile(r"([A-Z]+)=([^=;]+)")
_NUMBER = re.compile(r"[+-]?[0-9]{1,6}")
_WEEKDAY = re.compile(r"([+-]?[0-9]{1,3})?([A-Z]{2})")
_UNTIL = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})(?:T([0-9]{2})([0-9]{2})([0-9]{2})(Z)?)?")


class Whole(NamedTuple):
    """The numbers that a part may hold; negative ones too if it `counts_back`."""

    low: int
    high: int
    counts_back: bool = False

    @property
    def words(self) -> str:
        back = f", or -{self.high} to -{self.low} from the end" if self.counts_back else ""
        return f"{self.low} to {self.high}{back}"


_LISTS: Mapping[str, Whole] = {
    "BYMONTH": Whole(1, 12),
    "BYWEEKNO": Whole(1, 53, True),
    "BYYEARDAY": Whole(1, 366, True),
    "BYMONTHDAY": Whole(1, 31, True),
    "BYSETPOS": Whole(1, 366, True),
    "BYHOUR": Whole(0, 23),
    "BYMINUTE": Whole(0, 59),
    "BYSECOND": Whole(0, 0),
}
_SINGLE: Mapping[str, Whole] = {"INTERVAL": Whole(1, 9999), "COUNT": Whole(1, MOST_COUNT)}
_KEYS = ("FREQ", *_SINGLE, "UNTIL", "WKST", "BYDAY", *_LISTS)
# What RFC 5545 allows of the parts that name days, by frequency.
_OUT_OF_PLACE: Mapping[str, tuple[str, ...]] = {
    DAILY: ("BYWEEKNO", "BYYEARDAY", "BYSETPOS"),
    WEEKLY: ("BYWEEKNO", "BYYEARDAY", "BYMONTHDAY"),
    MONTHLY: ("BYWEEKNO", "BYYEARDAY"),
    YEARLY: (),
}


class NthDay(NamedTuple):
    """A weekday (0 is Monday): each, the nth of its period, or from its end if `nth` < 0."""

    weekday: int
    nth: int = 0


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The parts of a rule; `text` is all of it in capitals, without blanks and `RRULE:`.

    `until` is the text of UNTIL. `wkst` is the weekday that begins a week (0 is Monday).
    """

    text: str
    frequency: str
    interval: int
    count: int | None
    until: str | None
    wkst: int
    lists: Mapping[str, tuple[int, ...]]
    weekdays: tuple[NthDay, ...]

    @property
    def times(self) -> tuple[int, ...]:
        """The minutes of the day that the rule itself names, ascending; none: written beside it."""
        hours, minutes = self.lists.get("BYHOUR", ()), self.lists.get("BYMINUTE", ())
        return tuple(sorted({60 * hour + minute for hour in hours for minute in minutes or (0,)}))

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of BYSETPOS."""
        return self.lists.get("BYSETPOS", ())

    @property
    def names_days(self) -> bool:
        """Whether the rule names its days; else they are those of its first day."""
        return bool(self.weekdays) or any(
            key in self.lists for key in ("BYWEEKNO", "BYYEARDAY", "BYMONTHDAY")
        )

    def beginning(self, first: date) -> "Recurrence":
        """Return the rule with the days named that RFC 5545 takes from its first day."""
        if self.names_days or self.frequency == DAILY:
            return self
        if self.frequency == WEEKLY:
            return replace(self, weekdays=(NthDay(first.weekday()),))
        lists = {**self.lists, "BYMONTHDAY": (first.day,)}
        if self.frequency == YEARLY:
            lists.setdefault("BYMONTH", (first.month,))
        return replace(self, lists=lists)


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
    parts = _parts_of(text, cleaned)
    frequency = _frequency(text, parts)
    lists = {key: _numbers(key, parts[key]) for key in _LISTS if key in parts}
    single = {key: _whole(key, parts[key], _SINGLE[key]) for key in _SINGLE if key in parts}
    read = Recurrence(
        text=cleaned,
        frequency=frequency,
        interval=single.get("INTERVAL", 1),
        count=single.get("COUNT"),
        until=_until(parts.get("UNTIL")),
        wkst=_weekday("WKST", parts.get("WKST", "MO")),
        lists=lists,
        weekdays=tuple(_weekdays(parts["BYDAY"])) if "BYDAY" in parts else (),
    )
    _check_places(read)
    return read


def _parts_of(text: str, cleaned: str) -> dict[str, str]:
    for key, remedy in (
        ("DTSTART", 'write it as "starting_at"'),
        ("EXDATE", 'write the dates as "except"'),
        ("RDATE", "write the dates as due dates, in a list of rules"),
        ("EXRULE", 'write what it leaves out as "except"'),
    ):
        if key in cleaned:
            raise _refused(text, f"holds {key}; {remedy}, and the rule alone as rrule")
    if not _ALLOWED.fullmatch(cleaned) or not cleaned:
        raise _refused(text, f"is not a recurrence rule; {EXAMPLE}")
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


def _frequency(text: str, parts: Mapping[str, str]) -> str:
    frequency = parts.get("FREQ")
    if frequency in FREQUENCIES:
        return frequency
    if frequency is None:
        raise _refused(text, f"has no FREQ; {EXAMPLE}")
    allowed = ", ".join(FREQUENCIES)
    if frequency not in _SHORTER_S:
        raise InvalidRule("FREQ", f"{quote(frequency)} is unknown; write one of {allowed}")
    if set(parts) <= {"FREQ", "INTERVAL"}:
        count = _whole("INTERVAL", parts.get("INTERVAL", "1"), _SINGLE["INTERVAL"])
        every = interval_of(count * _SHORTER_S[frequency])
        remedy = f'write the interval {{"every": "{every}"}} instead'
    else:
        remedy = "write a cron rule, or FREQ=DAILY with BYHOUR and BYMINUTE"
    raise InvalidRule("FREQ", f"{quote(frequency)} is shorter than a day; {remedy}")


def _numbers(key: str, text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(_whole(key, one, _LISTS[key]) for one in text.split(",")))


def _whole(key: str, text: str, allowed: Whole) -> int:
    number = int(text) if _NUMBER.fullmatch(text) else None
    if number is not None:
        size = abs(number) if allowed.counts_back else number
        if allowed.low <= size <= allowed.high:
            return number
    if key == "BYSECOND":
        raise InvalidRule(
            key, f"{quote(text)} is no full minute; write BYSECOND=0, or leave it out"
        )
    if key == "COUNT" and number is not None and number > allowed.high:
        raise InvalidRule(key, f"{quote(text)} is above {allowed.high}; write UNTIL instead")
    raise InvalidRule(key, f"{quote(text)} is out of range; write {allowed.words}")


def _weekdays(text: str) -> list[NthDay]:
    found = []
    for item in text.split(","):
        match = _WEEKDAY.fullmatch(item)
        number, name = match.groups() if match else (None, item)
        nth = int(number) if number else 0
        if abs(nth) > 53 or (number and not nth):
            problem = f"{quote(item)} is out of range; write 1{name} to 53{name}, or -1{name}"
            raise InvalidRule("BYDAY", problem)
        found.append(NthDay(_weekday("BYDAY", name), nth))
    return list(dict.fromkeys(found))


def _weekday(key: str, name: str) -> int:
    if name in WEEKDAYS:
        return WEEKDAYS.index(name)
    near = name[:2] if name[:2] in WEEKDAYS else None
    remedy = f"write '{near}'" if near else f"write one of {', '.join(WEEKDAYS)}"
    raise InvalidRule(key, f"{quote(name)} is not a weekday; {remedy}")


def _until(text: str | None) -> str | None:
    found = None if text is None else _UNTIL.fullmatch(text)
    if text is None or (found is not None and _is_a_time(found)):
        return text
    remedy = "write a date such as '20271231', or a time such as '20271231T180000'"
    raise InvalidRule("UNTIL", f"{quote(text)} is not a date or a time; {remedy}")


def _is_a_time(found: re.Match[str]) -> bool:
    year, month, day, *clock = (int(one or 0) for one in found.groups()[:6])
    try:
        date(year, month, day)
    except ValueError:
        return False
    return all(part < most for part, most in zip(clock, (24, 60, 60), strict=True))


def _check_places(read: Recurrence) -> None:
    """Raise InvalidRule for parts that RFC 5545 does not allow together."""
    for key in _OUT_OF_PLACE[read.frequency]:
        if key in read.lists:
            where = "YEARLY" if key != "BYSETPOS" else "WEEKLY, MONTHLY or YEARLY"
            where = "MONTHLY or YEARLY" if key == "BYMONTHDAY" else where
            problem = f"does not go with FREQ={read.frequency}; remove it, or write FREQ={where}"
            raise InvalidRule(key, problem)
    _check_numbered_days(read)
    _check_positions(read)
    if len(read.times) > MOST_TIMES:
        problem = f"{len(read.times)} times a day are named; write at most {MOST_TIMES}"
        raise InvalidRule("BYHOUR", f"{problem}, or a cron rule")
    if read.count is not None and read.until is not None:
        raise InvalidRule("COUNT", "does not go with UNTIL; keep one of the two")
    if "BYMINUTE" in read.lists and "BYHOUR" not in read.lists:
        raise InvalidRule("BYMINUTE", "needs BYHOUR beside it; write both")


def _check_positions(read: Recurrence) -> None:
    if not read.positions:
        return
    if not (read.names_days or "BYMONTH" in read.lists):
        raise InvalidRule("BYSETPOS", "has no days to pick from; write BYDAY or BYMONTHDAY beside")
    if read.frequency == WEEKLY and min(map(abs, read.positions)) > _days_a_week(read):
        raise InvalidRule("BYSETPOS", "is beyond the days of BYDAY; write a smaller number")
    if len(read.times) > 1:
        raise InvalidRule("BYSETPOS", 'picks days; write the times beside the rule, as "at"')


def _days_a_week(read: Recurrence) -> int:
    return len({day.weekday for day in read.weekdays}) or 1


def _check_numbered_days(read: Recurrence) -> None:
    for day in read.weekdays:
        if not day.nth:
            continue
        name = f"{day.nth}{WEEKDAYS[day.weekday]}"
        if read.frequency in {DAILY, WEEKLY} or "BYWEEKNO" in read.lists:
            problem = f"'{name}' is a weekday of a month or a year; write '{name[-2:]}'"
            raise InvalidRule("BYDAY", problem)
        if abs(day.nth) > 5 and (read.frequency == MONTHLY or "BYMONTH" in read.lists):
            problem = f"'{name}' is in no month; write '5{name[-2:]}' or less, or '-1{name[-2:]}'"
            raise InvalidRule("BYDAY", problem)


def _refused(text: str, problem: str) -> InvalidRule:
    return InvalidRule("rule", f"{quote(text)} {problem}")
