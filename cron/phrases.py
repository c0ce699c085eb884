"""A rule from what people say: `every second Monday at 9`, `on the 1st and 15th at noon`."""

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from cron import recurrence as reading
from cron.dialects.spans import spoken_span
from cron.dialects.spoken import DAYS, ORDINAL, SHORT, day_fields, parted_phrase, rule_at
from cron.errors import InvalidRule, quote
from cron.fields import MONTHS, WEEKDAY, WEEKDAYS
from cron.intervals import UNIT_S, interval_of
from cron.signs import LAST, NthWeekday, parted

LONGEST_PHRASE = 120
EXAMPLES = "'weekdays at 7:30', 'last Friday of the month at 17:00' or 'every 15 minutes'"
_DATE = r"(\d{4}-\d{2}-\d{2})"
_BOUNDS = re.compile(
    rf"(.*?)(?:,? (?:from|starting|beginning)(?: on| from)? {_DATE})?(?:,? until {_DATE})?",
    re.ASCII,
)
_NTH = r"(other|second|third|fourth|fifth|\d{1,3}(?:st|nd|rd|th)?)"
_UNIT = r"(day|week|month|year)s?"
_NUMBERS = {"other": 2, "second": 2, "third": 3, "fourth": 4, "fifth": 5}
_EVERY = re.compile(rf"(?:every|each) (?:{_NTH} )?{_UNIT}(?:,? (?:on )?(?:the )?(.+))?", re.ASCII)
_EVERY_BEHIND = re.compile(rf"(?:on )?(?:the )?(.+?),? (?:of )?every {_NTH} {_UNIT}", re.ASCII)
_EVERY_WEEKDAY = re.compile(rf"(?:every|each) {_NTH} ({DAYS})", re.ASCII)
_EITHER = re.compile(rf"(?:on )?(?:the )?({ORDINAL} {DAYS})")
_VAGUE = re.compile(rf"(?:every|each) (?:{_NTH} )?{_UNIT}", re.ASCII)
_VAGUE_UNITS = {"weekly": "week", "monthly": "month", "yearly": "year", "annually": "year"}
_ON_A_DAY = {
    "week": "'every Monday at 9', or 'every 2 weeks on Monday at 9'",
    "month": "'on the 1st at 9', or 'every 2 months on the 1st at 9 from 2027-01-01'",
    "year": "'on 1 January at 9', or 'every 2 years on 1 January at 9 from 2027-01-01'",
}
_FREQUENCY = {
    "day": reading.DAILY, "week": reading.WEEKLY, "month": reading.MONTHLY, "year": reading.YEARLY,
}  # fmt: skip


class _Days(NamedTuple):
    """Days of each `interval`-th unit, as the three fields of a cron rule."""

    interval: int
    unit: str
    fields: str


class _Bounds(NamedTuple):
    """The first and the last day that a phrase names."""

    since: date | None
    until: date | None


def rule_of_phrase(phrase: str, now: datetime) -> dict[str, Any]:
    """Return the rule that a phrase says, as a document writes it, without its zone.

    `now` is on the clock of that zone: every second Monday begins with the next one. Raises
    InvalidRule for a phrase that is not understood, or could mean several rules.
    """
    text = " ".join(phrase.lower().split()).rstrip(".")
    if len(text) > LONGEST_PHRASE:
        raise InvalidRule("phrase", f"is longer than {LONGEST_PHRASE} characters; write {EXAMPLES}")
    said, bounds = _bounded(text)
    if bounds == (None, None) and (often := _within_a_day(said)) is not None:
        return often
    ways = tuple(parted_phrase(said))
    if said and not ways:
        problem = f"{quote(text)} could mean several rules; write am or pm after each time"
        raise InvalidRule("phrase", f"{problem}, such as 'at 7 am and 9 pm'")
    for times, days in ways:
        if times and (rule := _at(times, days, bounds, now)) is not None:
            return rule
    raise _refused(text, ways[0][1] if ways else "")


def _bounded(text: str) -> tuple[str, _Bounds]:
    found = _BOUNDS.fullmatch(text)
    said, since, until = found.groups() if found else (text, None, None)
    try:
        return said, _Bounds(_date(since), _date(until))
    except ValueError as error:
        raise InvalidRule("phrase", f"{quote(text)} names no date: {error}") from None


def _date(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)


def _within_a_day(text: str) -> dict[str, Any] | None:
    """Return the rule of every so many minutes or hours, on all days or some."""
    if text in SHORT:
        return {"cron_rule": SHORT[text]}
    often, _, days = text.partition(" on ")
    span, fields = spoken_span(often), day_fields(days)
    if span is None or fields is None or UNIT_S[span[1]] >= UNIT_S["day"]:
        return None
    seconds = span[0] * UNIT_S[span[1]]
    minutes, rest = divmod(seconds, UNIT_S["minute"])
    if minutes and not rest and 60 % minutes == 0:
        minute = {1: "*", 60: "0"}.get(minutes, f"*/{minutes}")
        return {"cron_rule": f"{minute} * {fields}"}
    every = interval_of(seconds)
    return None if every is None or days else {"every": every}


def _at(times: Sequence[int], text: str, bounds: _Bounds, now: datetime) -> dict[str, Any] | None:
    """Return the rule of these times on the days that a text names; None for days of no kind."""
    days = _days(text)
    if days is None:
        return None
    if days.interval == 1 and bounds == (None, None) and (rule := rule_at(times, days.fields)):
        return {"cron_rule": rule}
    parts = _parts(days)
    if parts is None:
        return None
    since = bounds.since or _next(days, times, now)
    if since is None:
        raise InvalidRule(
            "phrase",
            f"{quote(text)} leaves open in which {days.unit} it begins; "
            f"add its first day, such as 'from {now.year + 1}-01-01'",
        )
    if bounds.until is not None and bounds.until < since:
        problem = f"ends on {bounds.until}, before it begins on {since}; write a later day after"
        raise InvalidRule("phrase", f"{quote(text)} {problem} 'until'")
    until = {} if bounds.until is None else {"UNTIL": f"{bounds.until:%Y%m%d}"}
    rrule = ";".join(f"{key}={value}" for key, value in (parts | until).items())
    at = [f"{time // 60:02}:{time % 60:02}" for time in sorted(set(times))]
    return {"rrule": rrule, "at": at[0] if len(at) == 1 else at, "starting_at": f"{since}"}


def _days(text: str) -> _Days | None:
    """Return the days of a text: those of a cron rule, or those of every so many units."""
    if (fields := day_fields(text)) is not None:
        return _Days(1, _unit_of(fields), fields)
    if (found := _EVERY_WEEKDAY.fullmatch(text)) is not None:
        nth, unit, rest = found[1], "week", found[2]
    elif (found := _EVERY.fullmatch(text)) is not None:
        nth, unit, rest = found[1], found[2], found[3] or ""
    elif (found := _EVERY_BEHIND.fullmatch(text)) is not None:
        rest, nth, unit = found.groups()
    else:
        return None
    number = _NUMBERS.get(nth) or int(re.sub(r"\D", "", nth or "1"))
    # The 1st one is no interval: `every 1st day` is not each of them.
    if number == 1 and nth and not nth.isdecimal():
        return None
    fields = day_fields(rest) or day_fields(f"{rest} of the month")
    is_whole = fields is not None and number and _unit_of(fields) == unit
    return _Days(number, unit, fields) if fields is not None and is_whole else None


def _unit_of(fields: str) -> str:
    """Return the unit in which the days of a cron rule come again."""
    day, month, weekday = fields.split()
    if month != "*":
        return "year"
    if day != "*" or re.search("[#L]", weekday):
        return "month"
    return "day" if weekday == "*" else "week"


def _parts(days: _Days) -> dict[str, str] | None:
    """Return the parts of a recurrence rule; None for the days nearest to others."""
    day, month, weekday = days.fields.split()
    if "W" in day:
        return None
    parts = {"FREQ": _FREQUENCY[days.unit]}
    if days.interval > 1:
        parts["INTERVAL"] = str(days.interval)
    if month != "*":
        parts["BYMONTH"] = ",".join(str(MONTHS.index(one) + 1) for one in month.split(","))
    if day != "*":
        parts["BYMONTHDAY"] = day.replace("L", "-1")
    if weekday != "*":
        parts["BYDAY"] = ",".join(_weekdays(weekday))
    return parts


def _weekdays(field: str) -> list[str]:
    flags, signs = parted(WEEKDAY, field)
    plain = [name[:2].upper() for n, name in enumerate(WEEKDAYS) if _is_meant(flags, n)]
    numbered = [one for one in signs if isinstance(one, NthWeekday)]
    return plain + [
        f"{-1 if one.nth == LAST else one.nth}{WEEKDAYS[one.weekday][:2].upper()}"
        for one in numbered
    ]


def _is_meant(flags: bytes, weekday: int) -> bool:
    """Return whether flags mean a weekday (0 is Sunday, which ends a range as 7)."""
    return bool(flags[weekday] or (weekday == 0 and flags[7]))


def _next(days: _Days, times: Sequence[int], now: datetime) -> date | None:
    """Return the next day on which days of weeks begin; None for months, of which none is next."""
    if days.unit in {"month", "year"}:
        return None if days.interval > 1 else now.date()
    is_over = max(times) <= 60 * now.hour + now.minute
    first = now.date() + timedelta(days=is_over)
    flags = parted(WEEKDAY, days.fields.split()[2]).flags
    coming = (first + timedelta(days=one) for one in range(7))
    return next(day for day in coming if _is_meant(flags, day.isoweekday() % 7))


def _refused(phrase: str, days: str) -> InvalidRule:
    """Return what is wrong with a phrase whose days are `days`."""
    vague = _VAGUE.fullmatch(days)
    unit = vague[2] if vague else _VAGUE_UNITS.get(days)
    if (example := _ON_A_DAY.get(unit or "")) is not None:
        return InvalidRule("phrase", f"{quote(phrase)} names no day; write {example}")
    if (either := _EITHER.fullmatch(days)) is not None:
        forms = (f"every {either[1]}", f"{either[1]} of the month")
        understood = " or ".join(f"'{one} at 9'" for one in forms if _days(one) is not None)
        if understood:
            problem = f"{quote(phrase)} could mean two rules; write {understood}"
            return InvalidRule("phrase", problem)
    if days and _days(days) is not None:
        remedy = f"write one, such as {quote(f'{days} at 9')}"
        return InvalidRule("phrase", f"{quote(phrase)} names no time of the day; {remedy}")
    return InvalidRule("phrase", f"{quote(phrase)} is not understood; write for example {EXAMPLES}")
