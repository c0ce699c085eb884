"""A rule in English."""

from collections.abc import Sequence
from typing import NamedTuple

from cron.day_modifiers import LAST, DayModifier, NthWeekday, parted
from cron.fields import FIELDS
from cron.rule import parse_rule

MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)
# Monday first and Sunday as 7, so that a weekend reads 'Saturday and Sunday'.
WEEKDAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

NTH = ("", "first", "second", "third", "fourth", "fifth")
# At most this many times of day are listed as HH:MM.
MOST_TIMES = 6


def in_words(rule: str) -> str:
    """Return a rule in English, such as 'at 07:00 on Monday'; raises InvalidRule.

    If both kinds of day are restricted, 'or' and 'only if' show which of Debian's two readings
    applies. The zone is no part of a rule.
    """
    fields = parse_rule(rule).text.split(" ")
    read = [parted(field, text) for field, text in zip(FIELDS, fields, strict=True)]
    minutes, hours, days, months, weekdays = (
        [value for value, flag in enumerate(one.flags) if flag] for one in read
    )
    either = not (fields[2].startswith("*") or fields[4].startswith("*"))
    week = _Days(sorted({value or 7 for value in weekdays}), read[4].modifiers)
    return f"{_time(minutes, hours)}{_day(_Days(days, read[2].modifiers), months, week, either)}"


class _Days(NamedTuple):
    """The days of a month, or of a week from 1 (Monday) to 7, and the modifiers of some."""

    days: list[int]
    modifiers: tuple[DayModifier, ...]

    def dates(self) -> str:
        parts = [_dates(self.days)] if self.days else []
        return joined([*parts, *map(_modifier, self.modifiers)], "and")

    def weekdays(self, last_word: str = "and") -> str:
        parts = [listed(self.days, ("", *WEEKDAY_NAMES), last_word)] if self.days else []
        return joined([*parts, *map(_modifier, self.modifiers)], last_word)


def _modifier(modifier: DayModifier) -> str:
    if isinstance(modifier, NthWeekday):
        which = "last" if modifier.nth == LAST else NTH[modifier.nth]
        return f"the {which} {WEEKDAY_NAMES[modifier.weekday - 1]}"
    if not modifier.is_from_last:
        return f"the day from Monday to Friday nearest to day {modifier.number}"
    if modifier.is_nearest and modifier.number == 0:
        return "the last day from Monday to Friday"
    day = "the last day"
    if modifier.number:
        day = f"the day {modifier.number} day{'s' if modifier.number > 1 else ''} before the last"
    return f"the day from Monday to Friday nearest to {day}" if modifier.is_nearest else day


def _time(minutes: list[int], hours: list[int]) -> str:
    if len(hours) < 24 and len(minutes) * len(hours) <= MOST_TIMES:
        times = [f"{hour:02}:{minute:02}" for hour in hours for minute in minutes]
        return f"at {joined(times, 'and')}"
    every = _every(minutes, 60)
    if every is None:
        return f"{_at_minutes(minutes)} past {_past_hours(hours)}"
    of_minutes = "every minute" if every == 1 else f"every {every} minutes"
    if len(hours) == 24:
        return of_minutes
    if hours[-1] - hours[0] == len(hours) - 1:
        return f"{of_minutes} from {hours[0]:02}:00 to {hours[-1]:02}:59"
    return f"{of_minutes} of {_past_hours(hours)}"


def _at_minutes(minutes: list[int]) -> str:
    step = _step(minutes)
    if step is not None:
        return f"at every {ordinal(step)} minute from {minutes[0]} to {minutes[-1]}"
    return f"at minute{'s' if len(minutes) > 1 else ''} {listed(minutes, range(60))}"


def _past_hours(hours: list[int]) -> str:
    every, step = _every(hours, 24), _step(hours)
    if every is not None:
        return "every hour" if every == 1 else f"every {ordinal(every)} hour from 0"
    if step is not None:
        return f"every {ordinal(step)} hour from {hours[0]} to {hours[-1]}"
    return f"hour{'s' if len(hours) > 1 else ''} {listed(hours, range(24))}"


def _day(dates: _Days, months: list[int], week: _Days, either: bool) -> str:
    of_months = "" if len(months) == 12 else listed(months, ("", *MONTH_NAMES))
    in_months = f" in {of_months}" if of_months else ""
    every_date, every_weekday = len(dates.days) == 31, len(week.days) == 7
    if (every_date and every_weekday) or (either and (every_date or every_weekday)):
        return in_months
    weekdays = f" on {week.weekdays()}"
    weekdays += f" of {of_months or 'each month'}" if week.modifiers else in_months
    if every_date:
        return weekdays
    of_dates = f" on {dates.dates()} of {of_months or 'the month'}"
    if every_weekday:
        return of_dates
    if either:
        return f"{of_dates} or{weekdays}"
    return f"{of_dates}, only if it is {week.weekdays('or')}"


def _dates(days: list[int]) -> str:
    step = _step(days)
    if step is not None:
        return f"every {ordinal(step)} day from {days[0]} to {days[-1]}"
    return f"day{'s' if len(days) > 1 else ''} {listed(days, range(32))}"


def _every(values: list[int], size: int) -> int | None:
    """Return n if the values are every n-th of the full cycle, without a shorter last step."""
    if size % len(values) or len(values) == 1:
        return None
    step = size // len(values)
    return step if values == list(range(0, size, step)) else None


def _step(values: list[int]) -> int | None:
    """Return the step of five or more evenly spaced values; None for a step of 1."""
    step = values[1] - values[0] if len(values) >= 5 else 1
    return step if step > 1 and values == list(range(values[0], values[-1] + 1, step)) else None


def listed(values: list[int], names: Sequence[object], last_word: str = "and") -> str:
    """Return the values by name, three or more consecutive ones as 'a to b'."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    parts: list[str] = []
    for run in runs:
        whole = [f"{names[run[0]]} to {names[run[-1]]}"]
        parts += whole if len(run) > 2 else [str(names[value]) for value in run]
    return joined(parts, last_word)


def joined(parts: list[str], last_word: str) -> str:
    return f" {last_word} ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def ordinal(number: int) -> str:
    ending = (
        "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return f"{number}{ending}"
