"""Fields of cron rules as sets of values: ours, and those of other schedulers."""

import re
from itertools import count, takewhile

from cron import InvalidRule
from cron.fields import WEEKDAY, Field, flags_of
from interop.entries import CannotMove

RULES = "write an action with a cron rule or an interval for it"
_PART = re.compile(r"(?:\*|(\d{1,9})(?:-(\d{1,9}))?)(?:/(\d{1,4}))?", re.ASCII)


def all_of(field: Field) -> set[int]:
    """Return every value of a field of a cron rule; Sunday is 0."""
    return set(range(field.low, (6 if field is WEEKDAY else field.high) + 1))


def values_of(field: Field, text: str) -> set[int] | None:
    """Return the values of a field of a cron rule, None if it is no such field."""
    try:
        flags = flags_of(field, text)
    except InvalidRule:
        return None
    found = {value for value, flag in enumerate(flags) if flag}
    return {value % 7 for value in found} if field is WEEKDAY else found


def ranges_of(values: set[int]) -> str:
    """Return values as single ones and ranges: `1-5,7`."""
    left, parts = set(values), []
    while left:
        first = min(left)
        run = list(takewhile(left.__contains__, count(first)))
        left -= set(run)
        parts.append(f"{first}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)))
    return ",".join(parts)


def values_in(name: str, text: str, low: int, high: int) -> set[int]:
    """Return the values of a field: numbers, ranges and steps, separated by commas.

    `n/step` goes on to the highest value. Raises CannotMove for anything else.
    """
    parts = text.lower().split(",")
    return {value for part in parts for value in _of_part(name, part.strip(), (low, high))}


def _of_part(name: str, part: str, bounds: tuple[int, int]) -> range:
    found = _PART.fullmatch(part)
    low, high = bounds
    if found is None:
        raise CannotMove(f"its {name} {part[:60]!r} is not part of a cron rule", RULES)
    first, last, step = (None if one is None else int(one) for one in found.groups())
    if step == 0:
        raise CannotMove(f"its {name} {part[:60]!r} is not part of a cron rule", RULES)
    if first is None:
        return range(low, high + 1, step or 1)
    end = last if last is not None else high if step else first
    if not low <= first <= end <= high:
        raise CannotMove(f"its {name} {part[:60]!r} is not within {low} to {high}", RULES)
    return range(first, end + 1, step or 1)
