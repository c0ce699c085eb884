"""A rule's text to the local minutes that match it, without zones or instants."""

import difflib
import re
from functools import lru_cache

from cron.days import MONTH_LENGTHS, NEVER, DayFields, Days, days_of
from cron.dialects import in_another_notation, in_other_characters
from cron.errors import InvalidRule, quote
from cron.fields import DAY, FIELDS, HOUR, MINUTE, MONTH, WEEKDAY, flags_of
from cron.hashed import fixed, has_hash, possible
from cron.minutes import Minutes
from cron.signs import parted, with_capitals

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
# What else the first field holds is another notation's.
_MINUTE = re.compile(r"[-+.*,/?#~0-9]*[a-z]?(?:[-(/].*)?")
_NO_MINUTE = bytes(60)
_EXAMPLE = "write minute, hour, day of month, month, day of week, such as '0 7 * * 1'"


class Rule(Minutes):
    """The local minutes that match a rule.

    `text` is the rule in lower case, signs in capitals, with single blanks between fields and
    nicknames expanded.
    `is_wildcard`: the minute or the hour field begins with `*`. In Debian's cron such a rule
    follows the wall clock through gaps and repeats.
    """

    __slots__ = ("_day_fields",)

    def __init__(self, text: str) -> None:
        fields = text.split(" ")
        minutes, hours = flags_of(MINUTE, fields[0]), flags_of(HOUR, fields[1])
        days, day_signs = parted(DAY, fields[2])
        months = flags_of(MONTH, fields[3])
        weekdays, weekday_signs = parted(WEEKDAY, fields[4])
        either = not (fields[2].startswith("*") or fields[4].startswith("*"))
        has_day = 1 in days[: _longest_month(months) + 1]
        if not either and not has_day and not day_signs:
            raise _never_fires(fields[2], fields[3], "*")
        times = b"".join([minutes if hour else _NO_MINUTE for hour in hours])
        super().__init__(text, times, fields[0].startswith("*") or fields[1].startswith("*"))
        sunday = bytes((weekdays[0] | weekdays[7],))
        week = sunday + weekdays[1:7]
        self._day_fields = DayFields(days, months, week, either, day_signs, weekday_signs)
        if not either and (day_signs or weekday_signs) and self.at_or_after(0) >= NEVER:
            raise _never_fires(*fields[2:])

    def find_days(self) -> Days:
        """Return the days; most rules are parsed only to be checked."""
        return days_of(self._day_fields)


def parse_rule(text: str) -> Rule:
    """Return the rule that `text` writes; raises InvalidRule, which names the field.

    The grammar is that of Debian's cron (see fields.py) with nicknames such as `@hourly`, in any
    case. A rule has at most 200 characters and at least one occurrence in some year. One with `H`
    becomes a rule by `fixed_rule`.
    """
    _check_length(text)
    return _parsed(text)


def check_rule(text: str) -> None:
    """Raise InvalidRule unless `text` is a rule, or one with `H` whatever that becomes."""
    _check_length(text)
    if not has_hash(text):
        _parsed(text)
        return
    first, *others = possible(normalised(text))
    _parsed(first)
    for one in others:
        try:
            _parsed(one)
        except InvalidRule as error:
            problem = f"may become {quote(one)} by its H: {error.problem}"
            raise InvalidRule(error.field, problem) from None


def fixed_rule(text: str, seed: bytes) -> str:
    """Return a rule in which each `H` is what `seed` selects: any bytes, such as a uid's."""
    return _fixed(text, seed) if has_hash(text) else text


@lru_cache(maxsize=10_000)
def _fixed(text: str, seed: bytes) -> str:
    return fixed(normalised(text), seed)


def _check_length(text: str) -> None:
    if not isinstance(text, str):
        raise InvalidRule("rule", f"is not text but {type(text).__name__}; {_EXAMPLE}")
    if len(text) > LONGEST_RULE:
        problem = f"{quote(text)} is longer than {LONGEST_RULE} characters; write a shorter one"
        raise InvalidRule("rule", problem)


# lru_cache keeps no errors, so a refused rule takes no memory.
@lru_cache(maxsize=2048)
def _parsed(text: str) -> Rule:
    rule = normalised(text)
    if has_hash(rule):
        problem = f"{quote(rule)} has an H, which an action fixes; write numbers outside of actions"
        raise InvalidRule("rule", problem)
    return Rule(rule)


def normalised(text: str) -> str:
    """Return five lower-case fields, signs in capitals, with single blanks between.

    Raises InvalidRule.
    """
    if not _ALLOWED.fullmatch(text):
        remedy = in_other_characters(text, tuple(NICKNAMES))
        plain = f"contains a character no rule has; {_EXAMPLE}"
        raise InvalidRule("rule", f"{quote(text)} {remedy or plain}")
    lowered = text.lower().replace("\t", " ").strip(" ")
    if lowered in NICKNAMES:
        return NICKNAMES[lowered]
    fields = lowered.split()
    if len(fields) != 5 or not _MINUTE.fullmatch(fields[0]):
        _refuse_another_notation(text.strip(), fields)
    # croniter and Quartz write `?` for any day.
    return " ".join(
        "*" if text == "?" and field in {DAY, WEEKDAY} else with_capitals(field, text)
        for field, text in zip(FIELDS, fields, strict=True)
    )


def _refuse_another_notation(text: str, fields: list[str]) -> None:
    """Raise InvalidRule for a text of another notation, or not of five fields."""
    found = in_another_notation(text, tuple(NICKNAMES))
    if found is not None:
        raise InvalidRule("rule", f"{quote(text)} {found}")
    if text.startswith("@"):
        raise _no_nickname(text.lower())
    if len(fields) != 5:
        raise InvalidRule("rule", f"{quote(text)} {_wrong_number(len(fields))}; {_EXAMPLE}")


def _no_nickname(nickname: str) -> InvalidRule:
    if nickname.startswith("@every"):
        remedy = "write five fields such as '*/5 * * * *', or an interval instead of a cron rule"
    elif nickname == "@reboot":
        remedy = "it has no time; write a nickname such as '@daily', or five fields"
    else:
        near = difflib.get_close_matches(nickname[:20], NICKNAMES, 1, 0.0)[0]
        remedy = f"write '{near}', or five fields such as '{NICKNAMES[near]}'"
    return InvalidRule("rule", f"{quote(nickname)} is not a known nickname; {remedy}")


def _wrong_number(count: int) -> str:
    if count == 0:
        return "is empty"
    if count in {6, 7}:
        extra = "seconds" if count == 6 else "seconds and years"
        return f"has {count} fields, and {extra} are not supported"
    return f"has {count} field{'s' if count > 1 else ''} instead of five"


def _longest_month(months: bytes) -> int:
    """Return the most days that one of these months can have."""
    return max(length for length, flag in zip(MONTH_LENGTHS, months, strict=True) if flag)


def _never_fires(days: str, months: str, weekdays: str) -> InvalidRule:
    if weekdays == "*":
        problem = f"{quote(days)} never occurs in month {quote(months)}; write a day of this month"
    else:
        meet = "beside a field that begins with *, a day has to match both; write other days"
        problem = f"{quote(days)} never falls on {quote(weekdays)}: {meet}"
    return InvalidRule(DAY.name, problem)
