"""A recurrence rule in English."""

from collections.abc import Sequence
from datetime import date

from cron.recurrence import reading
from cron.recurrence.reading import DAILY, MONTHLY, WEEKLY, NthDay, Recurrence
from cron.words import MONTH_NAMES, NTH, WEEKDAY_NAMES, joined, listed, ordinal

_UNIT = {DAILY: "day", WEEKLY: "week", MONTHLY: "month"}


def recurrence_in_words(rule: Recurrence, times: Sequence[int], first: date) -> str:
    """Return a rule in English, such as 'every second Monday at 09:00'.

    `times` are minutes of the day; `first` is the day of the first period.
    """
    named = rule.beginning(first)
    days, *others = _said(named)
    at = joined([f"{time // 60:02}:{time % 60:02}" for time in times], "and")
    only_if = f", only if it is {joined(others, 'and')}" if others else ""
    return f"{days} at {at}{only_if}{_ending(rule)}"


def _said(rule: Recurrence) -> list[str]:
    """Return the days of a rule, and what they must be besides."""
    every = f"every {_nth_of(rule.interval)}"
    is_one_or_all = len(rule.weekdays) == 1 or rule.interval == 1
    match rule.frequency:
        case reading.DAILY if rule.interval == 1 and _names_weekdays_only(rule):
            return [f"every {_weekdays(rule.weekdays)}{_months(rule)}"]
        case reading.DAILY:
            return [f"{every}day{_months(rule)}", *_kinds(rule, "or")]
        case reading.WEEKLY if is_one_or_all and not rule.positions:
            return [f"{every}{_weekdays(rule.weekdays)}{_months(rule)}"]
    of_period = f" of {_period(rule)}{_in_months(rule)}"
    if rule.positions:
        return [f"on {_picked(rule, _kinds(rule))}{of_period}"]
    first, *_ = _kinds(rule) or ["each day"]
    return [f"on {first}{of_period}", *_kinds(rule, "or")[1:]]


def _names_weekdays_only(rule: Recurrence) -> bool:
    return bool(rule.weekdays) and "BYMONTHDAY" not in rule.lists


def _kinds(rule: Recurrence, last_word: str = "and") -> list[str]:
    """Return the kinds of day that a rule names: a day has to be one of each kind."""
    kinds = [
        _numbered("day", rule.lists[key], last_word)
        for key in ("BYMONTHDAY", "BYYEARDAY")
        if key in rule.lists
    ]
    return kinds + ([_weekdays(rule.weekdays, last_word)] if rule.weekdays else [])


def _numbered(what: str, numbers: Sequence[int], last_word: str = "and") -> str:
    plain = sorted(number for number in numbers if number > 0)
    names = listed(plain, range(400), last_word) if plain else ""
    parts = [f"{what}{'s' if len(plain) > 1 else ''} {names}"] if plain else []
    from_last = sorted((number for number in numbers if number < 0), reverse=True)
    parts += [f"the {_nth_last(number)} {what}" for number in from_last]
    return joined(parts, last_word)


def _weekdays(days: Sequence[NthDay], last_word: str = "and") -> str:
    plain = sorted(day.weekday + 1 for day in days if not day.nth)
    parts = [listed(plain, ("", *WEEKDAY_NAMES), last_word)] if plain else []
    for day in days:
        if day.nth:
            which = _nth_last(day.nth) if day.nth < 0 else _nth(day.nth)
            parts.append(f"the {which} {WEEKDAY_NAMES[day.weekday]}")
    return joined(parts, last_word)


def _picked(rule: Recurrence, kinds: list[str]) -> str:
    """Return 'the last day from Monday to Friday', 'the first of days 8 and 22'."""
    from_last = sorted(rule.positions, key=lambda one: (one < 0, one))
    which = joined([_nth_last(one) if one < 0 else _nth(one) for one in from_last], "and")
    if len(kinds) > 1 or not rule.weekdays or any(day.nth for day in rule.weekdays):
        return f"the {which} of {joined(kinds, 'and')}"
    names = listed(sorted(day.weekday + 1 for day in rule.weekdays), ("", *WEEKDAY_NAMES), "or")
    return f"the {which} {'day from ' if ' to ' in names else ''}{names}"


def _period(rule: Recurrence) -> str:
    """Return 'each month', 'every second week', 'March and May of each year'."""
    unit = _UNIT.get(rule.frequency, "year")
    every = f"each {unit}" if rule.interval == 1 else f"every {_nth_of(rule.interval)}{unit}"
    if unit == "year" and "BYWEEKNO" in rule.lists:
        return f"{_numbered('week', rule.lists['BYWEEKNO'])} of {every}{_months(rule)}"
    if unit == "year" and "BYMONTH" in rule.lists:
        return _month_names(rule.lists["BYMONTH"]) + ("" if rule.interval == 1 else f" of {every}")
    return every


def _in_months(rule: Recurrence) -> str:
    return _months(rule) if rule.frequency in _UNIT else ""


def _months(rule: Recurrence) -> str:
    months = rule.lists.get("BYMONTH")
    return f" in {_month_names(months)}" if months else ""


def _month_names(months: Sequence[int]) -> str:
    return listed(sorted(months), ("", *MONTH_NAMES))


def _nth_of(interval: int) -> str:
    return "" if interval == 1 else f"{_nth(interval)} "


def _nth(number: int) -> str:
    return NTH[number] if number < len(NTH) else ordinal(number)


def _nth_last(number: int) -> str:
    return "last" if number == -1 else f"{_nth(-number)} last"


def _ending(rule: Recurrence) -> str:
    if rule.count is not None:
        return ", once" if rule.count == 1 else f", {rule.count:,} times"
    if rule.until is None:
        return ""
    day, clock = rule.until[:8], rule.until[9:13]
    shown = f"{day[:4]}-{day[4:6]}-{day[6:]}"
    zone = " UTC" if rule.until.endswith("Z") else ""
    return f", until {shown}" + (f" {clock[:2]}:{clock[2:]}{zone}" if clock else "")
