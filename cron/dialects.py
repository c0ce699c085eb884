"""Rules in the notation of other schedulers, and what to write instead."""

import re
from collections.abc import Sequence

from cron.errors import InvalidRule
from cron.fields import FIELDS, flags_of

_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})", re.ASCII)
_ZONE = re.compile(r"(?:cron_)?tz=(\S+)\s", re.IGNORECASE)
_AWS = re.compile(r"cron\(([^()]*)\)", re.IGNORECASE)


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
    aws = _AWS.fullmatch(text)
    if aws is not None:
        return "is a rule of AWS; write only its first five fields, * for ?, and mon to sun"
    return _too_long(list(fields)) if len(fields) > 5 else None


def _too_long(fields: list[str]) -> str | None:
    if re.search("[a-z]", fields[5]) and _is_rule(fields[:5]):
        return f"holds a command; write '{' '.join(fields[:5])}', and make the command a step"
    # If the last field is *, it may be a year; the first number is then not a second.
    is_clear = fields[5] != "*" or not _is_rule(fields[:5])
    if len(fields) == 6 and is_clear and fields[0].isdigit() and _is_rule(fields[1:]):
        return f"has 6 fields, and seconds are not supported; write '{' '.join(fields[1:])}'"
    return None


def _is_rule(fields: list[str]) -> bool:
    try:
        for field, items in zip(FIELDS, fields, strict=True):
            flags_of(field, items)
    except InvalidRule:
        return False
    return True
