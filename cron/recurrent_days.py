"""A recurrence rule to the local days and minutes that match.

python-dateutil finds the days that a rule names in each kind of year; INTERVAL leaves some of them.
So a rule costs no more than the years that it is asked about, whether it fires or not: left to
itself, dateutil looks for a day up to the year 9999.
"""

import calendar
from collections.abc import Sequence
from datetime import MAXYEAR, date, datetime, time, timedelta
from functools import lru_cache

from cron.days import NEVER, ORIGIN, STARTS, YEAR_OF, YEARS, Days
from cron.errors import InvalidRule, quote
from cron.minutes import MINUTES_A_DAY, Minutes
from cron.recurrence import MONTHLY, WEEKDAYS, YEARLY, Recurrence, read_recurrence

# So many months, or years, later, dateutil's calendar is over: it looks in one period alone.
_BEYOND = str(12 * MAXYEAR)
_OF_A_PERIOD = ("WKST", "BYMONTH", "BYWEEKNO", "BYYEARDAY", "BYMONTHDAY", "BYDAY", "BYSETPOS")


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


class RecurrentDays(Days):
    """The matching days of 1969 to 2200; each year is found when it is first asked for."""

    __slots__ = ("_week", "first", "rule")

    def __init__(self, rule: Recurrence, first: date) -> None:
        self.rule, self.first = rule, day_of(first)
        # A day before 1969 that begins a week.
        wkst = WEEKDAYS.index(rule.parts.get("WKST", "MO"))
        self._week = (wkst - ORIGIN.weekday()) % 7 - 7
        self._years = _Years(self, _within_a_period(rule.beginning(first)))

    def at_or_after(self, day: int) -> int:
        """Return the first matching day from `day` on, or NEVER."""
        return super().at_or_after(max(day, self.first))

    def count_before(self, day: int) -> int:
        """Return how many days match before `day`."""
        first, index = YEAR_OF[self.first], YEAR_OF[day]
        whole = sum(self._years[one].count(1) for one in range(first, index))
        return whole + self._years[index].count(1, 0, day - STARTS[index])

    def periods(self, until: int) -> list[bool]:
        """Return whether each of the next months, or years of a yearly rule, has a day.

        They cover four years, or longer by INTERVAL, and end before the day `until`.
        """
        rule, first = self.rule, date_of(self.first)
        months = 12 if rule.frequency == YEARLY else 1
        step = months * (rule.interval if rule.frequency in {MONTHLY, YEARLY} else 1)
        of_year = (rule.numbers("BYMONTH") if months == 1 else ()) or range(1, 13)
        begin = 12 * first.year + (first.month - 1) // months * months
        end = min(begin + 48 // months * step + 1, 12 * YEARS[-1])
        return [
            self.at_or_after(_begin(month)) < _begin(month + months)
            for month in range(begin + step, end, step)
            if month % 12 + 1 in of_year and _begin(month + months) <= until
        ]

    def has(self, day: int) -> bool:
        """Return whether a day is not before the first, in a period that INTERVAL leaves."""
        passed = self._period(day) - self._period(self.first)
        return day >= self.first and passed % self.rule.interval == 0

    def _period(self, day: int) -> int:
        """Return the number of the day, week, month or year that holds a day."""
        match self.rule.frequency:
            case "DAILY":
                return day
            case "WEEKLY":
                return (day - self._week) // 7
            case "MONTHLY":
                found = date_of(day)
                return 12 * found.year + found.month
        return date_of(day).year


class _Years(dict[int, bytes]):
    """The days of each year, counted from 1969, as flags."""

    def __init__(self, days: RecurrentDays, of_a_period: str) -> None:
        self._days, self._of_a_period = days, of_a_period

    def __missing__(self, index: int) -> bytes:
        named = _named_days(self._of_a_period, _like(YEARS[index]))
        if self._days.rule.interval > 1 or index <= YEAR_OF[self._days.first]:
            days = enumerate(named, STARTS[index])
            named = bytes(flag and self._days.has(day) for day, flag in days)
        self[index] = named
        return named


def day_of(day: date) -> int:
    """Return the number of a local day, counted from 1969-01-01."""
    return day.toordinal() - _ORIGIN


def date_of(day: int) -> date:
    """Return the local day of a number."""
    return date.fromordinal(day + _ORIGIN)


def _begin(month: int) -> int:
    """Return the first day of a month, counted from the year 0."""
    return day_of(date(month // 12, month % 12 + 1, 1))


@lru_cache(maxsize=4096)
def recurrent_days(text: str, first: date) -> RecurrentDays:
    """Return the days of a rule, shared by all actions with the same rule and first day."""
    return RecurrentDays(read_recurrence(text), first)


def _within_a_period(rule: Recurrence) -> str:
    """Return the rule of one month, or of one year, that names the same days."""
    frequency = MONTHLY if rule.frequency == MONTHLY else YEARLY
    parts = {"FREQ": frequency, "INTERVAL": _BEYOND}
    parts |= {key: rule.parts[key] for key in _OF_A_PERIOD if key in rule.parts}
    return ";".join(f"{key}={value}" for key, value in parts.items())


@lru_cache(maxsize=8192)
def _named_days(rule: str, year: int) -> bytes:
    """Return the days of a year that python-dateutil finds for a rule of one period, as flags."""
    from dateutil.rrule import rrulestr

    january = datetime(year, 1, 1)  # noqa: DTZ001 - a wall clock has no zone
    months = range(1, 13) if f"FREQ={MONTHLY}" in rule else (1,)
    flags = bytearray(365 + calendar.isleap(year))
    for month in months:
        for at in rrulestr(rule, dtstart=january.replace(month=month)):
            flags[(at - january).days] = 1
    return bytes(flags)


def _like(year: int) -> int:
    """Return the first year with the same days: its weeks depend on the year before, too."""
    return _FIRST_LIKE[_kind(year)]


def _kind(year: int) -> tuple[bool, bool, int]:
    return calendar.isleap(year - 1), calendar.isleap(year), date(year, 1, 1).weekday()


_ORIGIN = ORIGIN.toordinal()
_FIRST_LIKE = {_kind(year): year for year in reversed(YEARS)}
