"""A recurrence rule to the local days and minutes that match.

python-dateutil finds the days that a rule names within a year, once for each kind of year; the
periods that INTERVAL leaves, and the days that BYSETPOS picks from them, are found here. So no rule
costs more than the years that it is asked about, whether it fires or not.
"""

import calendar
from collections.abc import Iterator, Mapping, Sequence
from datetime import MAXYEAR, date, datetime, time, timedelta
from functools import lru_cache
from itertools import accumulate, pairwise

from cron.days import NEVER, ORIGIN, STARTS, YEAR_OF, YEARS
from cron.errors import InvalidRule, quote
from cron.minutes import MINUTES_A_DAY, Minutes
from cron.recurrence import reading
from cron.recurrence.reading import (
    MONTHLY,
    OF_DAYS,
    WEEKDAYS,
    WEEKLY,
    YEARLY,
    NthDay,
    Recurrence,
    read_recurrence,
)

# dateutil looks for days up to the year 9999: with this interval, it looks in one year alone.
_ONE_YEAR = f"FREQ=YEARLY;INTERVAL={MAXYEAR}"


class RecurrentMinutes(Minutes):
    """The local minutes of a rule whose first period is that of the day `first`.

    `times` are minutes of the day. A rule may have no occurrence: `check` says so.
    """

    __slots__ = ("_recurrent_days",)

    def __init__(self, rule: Recurrence, times: Sequence[int], first: date) -> None:
        flags = bytearray(MINUTES_A_DAY)
        for minute in times:
            flags[minute] = 1
        super().__init__(f"{rule.text} from {first}", bytes(flags), is_wildcard=False)
        self._recurrent_days = recurrent_days(rule.text, first)

    def find_days(self) -> "RecurrentDays":
        """Return the days of the rule."""
        return self._recurrent_days

    def matches_in(self, first: int, end: int) -> bool:
        """Return whether a minute in [first, end), a few hours, matches: no years are counted."""
        for day in range(first // MINUTES_A_DAY, (end - 1) // MINUTES_A_DAY + 1):
            low, high = first - day * MINUTES_A_DAY, end - day * MINUTES_A_DAY
            is_named = self.times.find(1, max(low, 0), min(high, MINUTES_A_DAY)) >= 0
            if is_named and self._recurrent_days.matches(day):
                return True
        return False

    def check(self) -> None:
        """Raise InvalidRule if no day matches before 2200."""
        days = self._recurrent_days
        if days.at_or_after(days.first) >= NEVER:
            rule = days.rule
            problem = f"{quote(rule.text)} names no day from {date_of(days.first)} on"
            raise InvalidRule("rule", f"{problem}; write days that occur")

    @staticmethod
    def minute_from(wall: datetime) -> int:
        """Return the number of the first local minute that begins at or after a local time."""
        whole = 60 * wall.hour + wall.minute + (wall.second > 0)
        return MINUTES_A_DAY * day_of(wall.date()) + whole

    @staticmethod
    def date_time(minute: int) -> datetime:
        """Return the local time of a minute; raises OverflowError beyond the calendar."""
        return datetime.combine(ORIGIN, time.min) + timedelta(minutes=minute)

    def nth(self, count: int, minute: int) -> int:
        """Return the `count`-th matching minute from `minute` on, or a number ≥ NEVER."""
        found = self.at_or_after(minute)
        while count > 1 and found < NEVER:
            found = self.at_or_after(found + 1)
            count -= 1
        return found


class RecurrentDays:
    """The matching days of 1969 to 2200; each year is found when it is first asked for.

    Years are counted from 1969, as in `cron.days`.
    """

    def __init__(self, rule: Recurrence, first: date) -> None:
        self.rule = rule
        self.first = day_of(first)
        self._first_year = YEAR_OF[self.first]
        self._picks_in_weeks = bool(rule.positions) and rule.frequency == WEEKLY
        # A day before 1969 that begins a week.
        self._week = (rule.wkst - ORIGIN.weekday()) % 7 - 7
        self._years: list[bytes | None] = [None] * len(YEARS)
        self._kinds: dict[tuple[bool, bool, int], bytes] = {}

    def at_or_after(self, day: int) -> int:
        """Return the first matching day from `day` on, or NEVER."""
        day = max(day, self.first)
        index = YEAR_OF[day]
        found = (self._years[index] or self._of_year(index)).find(1, day - STARTS[index])
        while found < 0:
            index += 1
            if index == len(self._years):
                return NEVER
            found = (self._years[index] or self._of_year(index)).find(1)
        return STARTS[index] + found

    def at_or_before(self, day: int) -> int:
        """Return the last matching day up to `day`, or -NEVER."""
        index = YEAR_OF[day]
        end = day - STARTS[index] + 1
        while index >= self._first_year:
            found = (self._years[index] or self._of_year(index)).rfind(1, 0, end)
            if found >= 0:
                return STARTS[index] + found
            index, end = index - 1, 366
        return -NEVER

    def matches(self, day: int) -> bool:
        """Return whether `day` matches."""
        index = YEAR_OF[day]
        return day >= self.first and self._of_year(index)[day - STARTS[index]] == 1

    def count_before(self, day: int) -> int:
        """Return how many days match before `day`."""
        index = YEAR_OF[day]
        if index < self._first_year:
            return 0
        whole = sum(self._of_year(one).count(1) for one in range(self._first_year, index))
        return whole + self._of_year(index).count(1, 0, day - STARTS[index])

    def _of_year(self, index: int) -> bytes:
        found = self._years[index]
        if found is None:
            found = self._years[index] = self._find(index)
        return found

    def _find(self, index: int) -> bytes:
        named, start = self._named(index), STARTS[index]
        if self.rule.interval == 1 and not self._picks_in_weeks and index > self._first_year:
            return named
        flags = bytearray(len(named))
        for begin, end in self._periods(index):
            low, high = max(begin, start), min(end, start + len(named))
            flags[low - start : high - start] = self._of_period(begin, end)[
                low - begin : high - begin
            ]
        before = min(max(self.first - start, 0), len(named))
        return bytes(before) + flags[before:]

    def _of_period(self, begin: int, end: int) -> bytes:
        """Return the days of the period [begin, end)."""
        if not self._picks_in_weeks:
            return self._named_in(begin, end)
        # dateutil begins the first week, and no other period, at the first day.
        before = max(self.first - begin, 0)
        return bytes(before) + _at_positions(self.rule, self._named_in(begin + before, end))

    def _periods(self, index: int) -> Iterator[tuple[int, int]]:
        """Yield the periods [begin, end) that have days in a year and that INTERVAL leaves."""
        first, last = self._number(self.first), self._number(STARTS[index + 1] - 1)
        number = self._number(max(STARTS[index], self.first))
        number += (first - number) % self.rule.interval
        for one in range(number, last + 1, self.rule.interval):
            yield self._begin(one), self._begin(one + 1)

    def _named_in(self, begin: int, end: int) -> bytes:
        """Return the days in [begin, end) that the rule names; a week may lie in two years."""
        first, last = max(begin, 0), min(end, STARTS[-1])
        years = range(YEAR_OF[first], YEAR_OF[last - 1] + 1)
        flags = b"".join(map(self._named, years))
        start = STARTS[years[0]]
        return bytes(first - begin) + flags[first - start : last - start]

    def _named(self, index: int) -> bytes:
        """Return the days of a year that the rule names, whatever INTERVAL and BYSETPOS say."""
        year = YEARS[index]
        kind = _kind(year)
        found = self._kinds.get(kind)
        if found is None:
            found = self._kinds[kind] = _named_days(self.rule, year)
        return found

    def _number(self, day: int) -> int:
        """Return the number of the period that holds a day."""
        match self.rule.frequency:
            case reading.DAILY:
                return day
            case reading.WEEKLY:
                return (day - self._week) // 7
            case reading.MONTHLY:
                found = date_of(day)
                return 12 * found.year + found.month - 1
        return date_of(day).year

    def _begin(self, number: int) -> int:
        """Return the first day of a period."""
        match self.rule.frequency:
            case reading.DAILY:
                return number
            case reading.WEEKLY:
                return self._week + 7 * number
            case reading.MONTHLY:
                return day_of(date(number // 12, number % 12 + 1, 1))
        return day_of(date(number, 1, 1))


def day_of(day: date) -> int:
    """Return the number of a local day, counted from 1969-01-01."""
    return day.toordinal() - _ORIGIN


def date_of(day: int) -> date:
    """Return the local day of a number."""
    return date.fromordinal(day + _ORIGIN)


def _named_days(rule: Recurrence, year: int) -> bytes:
    """Return the days of a year that python-dateutil finds for a rule, as flags."""
    if not rule.weekdays and not any(key in rule.lists for key in OF_DAYS):
        return b"\1" * (365 + calendar.isleap(year))
    from dateutil.rrule import rrulestr

    flags = bytearray(365 + calendar.isleap(year))
    begin = datetime(year, 1, 1)  # noqa: DTZ001 - a wall clock has no zone
    for at in rrulestr(_within_a_year(rule), dtstart=begin):
        flags[(at - begin).days] = 1
    return _picked_days(rule, year, bytes(flags))


def _picked_days(rule: Recurrence, year: int, flags: bytes) -> bytes:
    """Return what BYSETPOS leaves of the days of each month, or of the year; weeks come later."""
    if not rule.positions or rule.frequency not in {MONTHLY, YEARLY}:
        return flags
    lengths = [calendar.monthrange(year, month)[1] for month in range(1, 13)]
    starts = (0, *accumulate(lengths)) if rule.frequency == MONTHLY else (0, len(flags))
    return b"".join(_at_positions(rule, flags[start:end]) for start, end in pairwise(starts))


def _at_positions(rule: Recurrence, flags: bytes) -> bytes:
    """Return the days of one period that BYSETPOS picks."""
    days = [day for day, flag in enumerate(flags) if flag]
    places = (one - 1 if one > 0 else one for one in rule.positions)
    picked = {days[one] for one in places if -len(days) <= one < len(days)}
    return bytes(day in picked for day in range(len(flags)))


def _within_a_year(rule: Recurrence) -> str:
    """Return the yearly rule that names the same days, without INTERVAL and BYSETPOS."""
    lists = {key: rule.lists[key] for key in OF_DAYS if key in rule.lists}
    if rule.frequency == MONTHLY:
        # Numbered weekdays are then those of a month.
        lists.setdefault("BYMONTH", tuple(range(1, 13)))
    days = [f"{one.nth or ''}{WEEKDAYS[one.weekday]}" for one in _alike(rule, lists)]
    if not (days or set(lists) - {"BYMONTH"}):
        days = [*WEEKDAYS]
    parts = [f"{key}={','.join(map(str, values))}" for key, values in lists.items()]
    parts += [f"BYDAY={','.join(days)}"] if days else []
    return ";".join([f"{_ONE_YEAR};WKST={WEEKDAYS[rule.wkst]}", *parts])


def _alike(rule: Recurrence, lists: Mapping[str, object]) -> Iterator[NthDay]:
    """Yield the weekdays with a number each, if one has: dateutil wants a day to be of both."""
    is_numbered = any(one.nth for one in rule.weekdays)
    most = 5 if "BYMONTH" in lists else 53
    for day in rule.weekdays:
        if day.nth or not is_numbered:
            yield day
        else:
            yield from (NthDay(day.weekday, nth) for nth in range(1, most + 1))


def _kind(year: int) -> tuple[bool, bool, int]:
    """Return what the days of a year depend on: its weeks also on the year before."""
    return calendar.isleap(year - 1), calendar.isleap(year), date(year, 1, 1).weekday()


@lru_cache(maxsize=4096)
def recurrent_days(text: str, first: date) -> RecurrentDays:
    """Return the days of a rule, shared by all actions with the same rule and first day."""
    return RecurrentDays(read_recurrence(text).beginning(first), first)


_ORIGIN = ORIGIN.toordinal()
