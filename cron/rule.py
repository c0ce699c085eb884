"""A rule's text to the local minutes that match it, without zones or instants."""

import re
from functools import lru_cache

from cron.day_modifiers import modifier_of, parted, with_capitals
from cron.days import MONTH_LENGTHS, NEVER, DayFields, Days, days_of
from cron.errors import InvalidRule, quote
from cron.fields import DAY, FIELDS, HOUR, MINUTE, MONTH, WEEKDAY, flags_of, span_of
from cron.minutes import Minutes

LONGEST_RULE = 200

NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_ALLOWED = re.compile(r"[\t -~]*")
_NO_MINUTE = bytes(60)
_FIVE = "write five fields: minute hour day month weekday, such as '0 7 * * 1'"
_INTERVAL = 'for seconds or an interval write {"every": "PT30S"} instead of a cron rule'


class Rule(Minutes):
    """The local minutes that match a rule.

    `text` is the rule in lower case, modifiers in capitals, with single blanks between fields and
    nicknames expanded.
    `is_wildcard`: the minute or the hour field begins with `*`. In Debian's cron such a rule
    follows the wall clock through gaps and repeats.
    """

    __slots__ = ("_day_fields",)

    def __init__(self, text: str) -> None:
        fields = text.split(" ")
        minutes, hours = flags_of(MINUTE, fields[0]), flags_of(HOUR, fields[1])
        days, day_modifiers = parted(DAY, fields[2])
        months = flags_of(MONTH, fields[3])
        weekdays, weekday_modifiers = parted(WEEKDAY, fields[4])
        either = not (fields[2].startswith("*") or fields[4].startswith("*"))
        longest = max(length for length, flag in zip(MONTH_LENGTHS, months, strict=True) if flag)
        has_day = 1 in days[: longest + 1]
        if not either and not has_day and not day_modifiers:
            raise _never_fires(fields[2], fields[3], "*")
        times = b"".join([minutes if hour else _NO_MINUTE for hour in hours])
        super().__init__(text, times, fields[0].startswith("*") or fields[1].startswith("*"))
        sunday = bytes((weekdays[0] | weekdays[7],))
        week = sunday + weekdays[1:7]
        self._day_fields = DayFields(days, months, week, either, day_modifiers, weekday_modifiers)
        if not either and (day_modifiers or weekday_modifiers) and self.at_or_after(0) >= NEVER:
            raise _never_fires(*fields[2:])

    def find_days(self) -> Days:
        """Return the days; most rules are parsed only to be checked."""
        return days_of(self._day_fields)


def parse_rule(text: str) -> Rule:
    """Return the rule that `text` writes; raises InvalidRule, which names the field.

    The grammar is that of Debian's cron (see fields.py) with nicknames such as `@hourly`, in any
    case. A rule has at most 200 characters and at least one occurrence in some year.
    """
    if not isinstance(text, str):
        raise InvalidRule("rule", f"is not text but {type(text).__name__}; {_FIVE}")
    if len(text) > LONGEST_RULE:
        problem = f"{quote(text)} is longer than {LONGEST_RULE} characters; write a shorter one"
        raise InvalidRule("rule", problem)
    return _parsed(text)


# lru_cache keeps no errors, so a refused rule takes no memory.
@lru_cache(maxsize=2048)
def _parsed(text: str) -> Rule:
    return Rule(normalised(text))


def normalised(text: str) -> str:
    """Return five lower-case fields, modifiers in capitals, with single blanks between.

    Raises InvalidRule.
    """
    if not _ALLOWED.fullmatch(text):
        raise InvalidRule("rule", f"{quote(text)} contains a character no rule has; {_FIVE}")
    lowered = text.lower().replace("\t", " ").strip(" ")
    if lowered in NICKNAMES:
        return NICKNAMES[lowered]
    fields = lowered.split()
    if len(fields) != 5:
        raise _not_five_fields(text.strip(), len(fields))
    # croniter and Quartz write `?` for any day.
    return " ".join(
        "*" if text == "?" and field in {DAY, WEEKDAY} else with_capitals(field, text)
        for field, text in zip(FIELDS, fields, strict=True)
    )


def _not_five_fields(rule: str, count: int) -> InvalidRule:
    if count == 1 and rule.startswith("@"):
        problem = f"is not a known nickname; write '@daily', '@hourly' or {_FIVE[6:]}"
    else:
        fields = f"has {count} field{'s' if count > 1 else ''}" if count else "is empty"
        problem = f"{fields}; {_FIVE}; {_INTERVAL}"
    return InvalidRule("rule", f"{quote(rule)} {problem}")


def _never_fires(days: str, months: str, weekdays: str) -> InvalidRule:
    if weekdays == "*":
        problem = f"{quote(days)} never occurs in month {quote(months)}; write a day of this month"
    else:
        meet = "beside a field that begins with *, a day has to match both; write other days"
        problem = f"{quote(days)} never falls on {quote(weekdays)}: {meet}"
    return InvalidRule(DAY.name, problem)


@lru_cache(maxsize=2048)
def oversized_steps(text: str) -> tuple[tuple[str, str, int], ...]:
    """Return each item of a rule whose step exceeds its range: field, item, and its only value.

    Debian's cron accepts such a step, which often stands for an interval: `*/90` minutes.
    """
    return tuple(
        (field.name, item, span.first)
        for field, items in zip(FIELDS, normalised(text).split(" "), strict=True)
        for item in items.split(",")
        if modifier_of(field, item) is None
        for span in [span_of(field, item)]
        if span.step > max(span.last - span.first, 1)
    )
