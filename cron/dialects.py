"""Rules in the notation of other schedulers, and what to write instead."""

import re
from collections.abc import Sequence

from cron.errors import InvalidRule
from cron.fields import FIELDS, WEEKDAYS, Field
from cron.signs import parted, with_capitals

_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})", re.ASCII)
_ZONE = re.compile(r"(?:cron_)?tz=(\S+)\s", re.IGNORECASE)
_AWS = re.compile(r"cron\(([^()]*)\)", re.IGNORECASE)
_RATE = re.compile(r"rate\(\s*([0-9]{1,6})\s+(minute|hour|day)s?\s*\)", re.IGNORECASE)
_DESIGNATORS = {"minute": "PT{}M", "hour": "PT{}H", "day": "P{}D"}
# A number of a weekday: not the step behind it, nor the n of `#`.
_WEEKDAY_NUMBER = re.compile(r"(?<![#/\w])([1-7])(?=$|[-,l#/])")
_FROM_ON = re.compile(r"(\d+)/(\d+)")


def in_another_notation(text: str, fields: Sequence[str]) -> str | None:
    """Return what is wrong, and what to write; None if no other notation is recognised.

    `fields` are those of the text in lower case.
    """
    clock = _CLOCK.fullmatch(text)
    if clock is not None and int(clock[1]) < 24 and int(clock[2]) < 60:
        return f"is a time of day; write '{int(clock[2])} {int(clock[1])} * * *'"
    zone = _ZONE.match(text)
    if zone is not None:
        return f'names a zone; write only the rule, and "timezone": "{zone[1]}" beside it'
    rate = _RATE.fullmatch(text)
    if rate is not None:
        every = _DESIGNATORS[rate[2].lower()].format(int(rate[1]))
        return f'is a rate of AWS; write an interval, {{"every": "{every}"}}'
    aws = _AWS.fullmatch(text)
    if aws is not None:
        return _of_aws(aws[1].lower().split())
    return _too_long(list(fields)) if len(fields) > 5 else None


def _of_aws(fields: list[str]) -> str:
    rule = _renumbered(fields[:5]) if len(fields) == 6 else None
    if rule is None:
        return "is a rule of AWS; write only its first five fields, * for ?, and mon to sun"
    return f"is a rule of AWS; write '{rule}'{_without_years(fields[5])}"


def _too_long(fields: list[str]) -> str | None:
    # Only Quartz and AWS need a `?`.
    if len(fields) in {6, 7} and "?" in fields:
        return _of_quartz(fields)
    # If the last field is *, it may be a year; the first number is then not a second.
    is_clear = fields[5] != "*" or not _is_rule(fields[:5])
    if len(fields) == 6 and is_clear and fields[0].isdigit() and _is_rule(fields[1:]):
        return f"has 6 fields, and seconds are not supported; write '{' '.join(fields[1:])}'"
    if re.search("[a-z]", fields[5]) and _is_rule(fields[:5]):
        return f"holds a command; write '{' '.join(fields[:5])}', and make the command a step"
    return None


def _of_quartz(fields: list[str]) -> str | None:
    rule = _renumbered(fields[1:6])
    if rule is None or not fields[0].isdigit():
        return None
    years = _without_years(fields[6]) if len(fields) == 7 else ""
    return f"is a rule of Quartz with seconds, which are not supported; write '{rule}'{years}"


def _without_years(years: str) -> str:
    return "" if years in {"*", "?"} else f"; the years {years} are not supported"


def _renumbered(fields: list[str]) -> str | None:
    """Return a rule of AWS or Quartz, whose Sunday is 1, as ours; None if it cannot be."""
    *others, weekdays = ("*" if text == "?" else text for text in fields)
    named = _WEEKDAY_NUMBER.sub(lambda found: WEEKDAYS[int(found[1]) - 1], weekdays)
    # Alone, `L` is their Saturday.
    named = "sat" if named == "l" else named
    rule = [_with_range(field, text) for field, text in zip(FIELDS, [*others, named], strict=True)]
    if not _is_rule(rule):
        return None
    return " ".join(with_capitals(field, text) for field, text in zip(FIELDS, rule, strict=True))


def _with_range(field: Field, text: str) -> str:
    """Return a field whose `5/15` is written as `5-59/15`."""
    items = (_FROM_ON.sub(rf"\1-{field.high}/\2", one) for one in text.split(","))
    return ",".join(items)


def _is_rule(fields: list[str]) -> bool:
    try:
        for field, items in zip(FIELDS, fields, strict=True):
            parted(field, items)
    except InvalidRule:
        return False
    return True
