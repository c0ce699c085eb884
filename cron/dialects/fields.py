"""Fields that other schedulers write in another way than we do."""

import re
from collections.abc import Sequence

from cron.errors import InvalidRule
from cron.fields import DAY, FIELDS, NAMES, WEEKDAY, Field
from cron.fields import unwrapped as unwrapped_range
from cron.hashed import hashed_of
from cron.signs import parted

_FROM_ON = re.compile(r"(\*|[a-z]+|\d+)/(\d+)")
_RANGE = re.compile(r"([a-z]+|\d+)-([a-z]+|\d+)(?:/(\d{1,9}))?", re.ASCII)
# The days of a month on which its nth weekday falls.
_WEEKS = {"1-7": 1, "8-14": 2, "15-21": 3, "22-28": 4}


def is_rule(fields: Sequence[str]) -> bool:
    """Return whether these, in lower case, are the five fields of a rule."""
    return len(fields) == len(FIELDS) and all(
        is_item(field, any_day(field, items)) for field, items in zip(FIELDS, fields, strict=True)
    )


def any_day(field: Field, items: str) -> str:
    """Return a field whose `?`, which stands for any day, is `*`."""
    return "*" if items == "?" and field in {DAY, WEEKDAY} else items


def is_item(field: Field, items: str) -> bool:
    """Return whether this is a legal text of a field."""
    try:
        plain = [item for item in items.split(",") if hashed_of(field, item) is None]
        if plain:
            parted(field, ",".join(plain))
    except InvalidRule:
        return False
    return True


def with_ranges(field: Field, text: str) -> str:
    """Return a field whose `5/15` is written as `5-59/15`, and `0/15` as `*/15`."""
    return ",".join(_with_range(field, item) for item in text.split(","))


def _with_range(field: Field, item: str) -> str:
    found = _FROM_ON.fullmatch(item)
    if found is None or found[1] == "*":
        return item
    start, step = found.groups()
    if start == str(field.low) or (start.isdigit() and int(start) == field.low):
        return f"*/{step}"
    high = 6 if field is WEEKDAY else field.high
    return f"{start}-{high}/{step}"


def with_short_names(field: Field, text: str) -> str:
    """Return a field in lower case whose `monday` or `january` has three letters."""
    if field not in NAMES:
        return text
    return re.sub(rf"\b(?:{NAMES[field]})\b", lambda found: found[0][:3], text)


def unwrapped(field: Field, text: str) -> str:
    """Return a field whose `fri-mon` or `20-2` is written without running backwards."""
    return ",".join(_unwrapped(field, item) for item in text.split(","))


def _unwrapped(field: Field, item: str) -> str:
    found = _RANGE.fullmatch(item)
    if found is None or is_item(field, item):
        return item
    start, end, step = found.groups()
    try:
        return unwrapped_range(field, start, end, int(step or 1))
    except InvalidRule:
        return item


def both_days(fields: list[str]) -> str | None:
    """Return a rule that requires day of month and weekday, as only cron does not.

    None if no rule can: only weeks that begin at the first are the nth weekday.
    """
    day, weekday = fields[2], fields[4]
    if day != "*" and weekday != "*":
        if day not in _WEEKS or not weekday.isalpha():
            return None
        fields = [*fields[:2], "*", fields[3], f"{weekday}#{_WEEKS[day]}"]
    return " ".join(fields) if is_rule([one.lower() for one in fields]) else None
