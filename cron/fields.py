"""One field of a rule: its text to spans, and spans to flags."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from cron.errors import InvalidRule, quote

# The largest int of Debian's cron. A step beyond the field's range is legal there and selects the
# first value only, so `*/90` in the minute field is minute 0.
LARGEST_STEP = 2**31 - 1

ITEM = re.compile(r"(?:(\*)|([a-z]+|\d+)(?:-([a-z]+|\d+))?)(?:/(\d+))?", re.ASCII)

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True, eq=False, slots=True)
class Field:
    """What one of the five fields allows: its range, ends included, and its names."""

    name: str
    low: int
    high: int
    names: dict[str, int]
    allowed: str


class Span(NamedTuple):
    """One item of a field: every `step`-th value of `first` to `last`, ends included."""

    first: int
    last: int
    step: int


MINUTE = Field("minute", 0, 59, {}, "a number from 0 to 59")
HOUR = Field("hour", 0, 23, {}, "a number from 0 to 23")
DAY = Field("day of month", 1, 31, {}, "a number from 1 to 31")
MONTH = Field(
    "month",
    1,
    12,
    {name: number for number, name in enumerate(MONTHS, 1)},
    "a number from 1 to 12, or jan to dec",
)
WEEKDAY = Field(
    "day of week",
    0,
    7,
    {name: number for number, name in enumerate(WEEKDAYS)},
    "a number from 0 to 7 (0 and 7 are Sunday), or sun to sat",
)
FIELDS = (MINUTE, HOUR, DAY, MONTH, WEEKDAY)

# What other schedulers write, and what to write instead.
_OF_OTHERS = {
    re.compile(
        r"~|^[hr](?![a-z])"
    ): 'write a number, and "jitter" beside the rule to spread actions',
    re.compile(r"[?#]|^[lw](?![a-z])|\d[lw]$"): "write 'L', 'L-3', '15W' or 'LW' as day of month, "
    "'friL' or 'mon#2' as day of week, each by itself; and '*' in place of '?'",
}


@lru_cache(maxsize=1024)
def flags_of(field: Field, text: str) -> bytes:
    """Return one flag (0 or 1) for each value from 0 to the field's highest, ends included.

    The text is in lower case. The grammar is that of Debian's cron: a step needs a range or `*`,
    and a range does not wrap around. Raises InvalidRule, which names the field.
    """
    flags = bytearray(field.high + 1)
    for item in text.split(","):
        first, last, step = span_of(field, item)
        flags[first : last + 1 : step] = b"\1" * len(range(first, last + 1, step))
    return bytes(flags)


def span_of(field: Field, item: str) -> Span:
    """Return the values of one item in lower case; raises InvalidRule."""
    match = ITEM.fullmatch(item)
    if match is None:
        raise _not_understood(field, item)
    star, start, end, step_text = match.groups()
    step = 1 if step_text is None else _step(field, item, step_text)
    if star:
        return Span(field.low, field.high, step)
    first = number_of(field, start)
    if end is None:
        if step_text is not None:
            raise _step_without_range(field, item, step)
        return Span(first, first, 1)
    last = number_of(field, end)
    if first > last:
        raise _wraps_round(field, item, step)
    return Span(first, last, step)


def number_of(field: Field, text: str) -> int:
    """Return the value that a number or a name writes; raises InvalidRule."""
    if not text.isdigit():
        number = field.names.get(text)
        if number is None:
            raise _unknown_name(field, text)
        return number
    # No int() of any length: 200 digits must not cost time.
    number = int(text) if len(text.lstrip("0")) <= 2 else field.high + 1
    if not field.low <= number <= field.high:
        side = f"below {field.low}" if number < field.low else f"above {field.high}"
        raise InvalidRule(field.name, f"{quote(text)} is {side}; write {field.allowed}")
    return number


def _step(field: Field, item: str, text: str) -> int:
    digits = text.lstrip("0")
    if not digits:
        problem = f"{quote(item)} has the step 0; write a step of 1 or more, such as '*/5'"
        raise InvalidRule(field.name, problem)
    if len(digits) > 10 or int(digits) > LARGEST_STEP:
        problem = f"{quote(item)} has a step that is too large; write one up to {field.high}"
        raise InvalidRule(field.name, problem)
    return int(digits)


def _step_without_range(field: Field, item: str, step: int) -> InvalidRule:
    start = item.partition("/")[0]
    top = 6 if field is WEEKDAY and start not in {"7", "07"} else field.high
    remedy = f"'{quote(start)[1:-1]}-{top}/{step}'"
    # Beside a restricted day, a leading * would require both.
    if field in {MINUTE, HOUR} and not int(start):
        remedy = f"'*/{step}'"
    return InvalidRule(field.name, f"{quote(item)} has a step but no range; write {remedy}")


def _wraps_round(field: Field, item: str, step: int) -> InvalidRule:
    start, _, end = item.partition("/")[0].partition("-")
    remedy = _unwrapped(field, start, end, step)
    return InvalidRule(field.name, f"{quote(item)} runs backwards; write '{remedy}'")


def _unwrapped(field: Field, start: str, end: str, step: int) -> str:
    """Return a range that runs backwards as a list that does not."""
    # Sunday is 0, also when it is written as 7.
    size = field.high - field.low + (field is not WEEKDAY)
    first, last = (number_of(field, one) for one in (start, end))
    if field is WEEKDAY:
        first, last = first % size, last % size
    if step > 1:
        values = range(first, last + size * (first > last) + 1, step)
        return ",".join(str((value - field.low) % size + field.low) for value in values)
    if first <= last:
        return f"{first}-{last}"
    high = field.low + size - 1
    return ",".join(f"{a}-{b}" if a < b else str(a) for a, b in ((first, high), (field.low, last)))


def _unknown_name(field: Field, text: str) -> InvalidRule:
    short = text[:3]
    if short in field.names:
        return InvalidRule(field.name, f"{quote(text)} is not short; write '{short}'")
    for other, place in ((MONTH, "fourth"), (WEEKDAY, "fifth")):
        if short in other.names:
            problem = f"{quote(text)} is a {other.name}; write '{short}' in the {place} field"
            return InvalidRule(field.name, problem)
    remedy = _instead_of(text) or f"write {field.allowed}"
    return InvalidRule(field.name, f"{quote(text)} is unknown; {remedy}")


def _not_understood(field: Field, item: str) -> InvalidRule:
    if not item:
        problem = f"has an empty item in its list; write {field.allowed} between commas"
        return InvalidRule(field.name, problem)
    plain = f"write {field.allowed}, '*' or a range such as '1-5', or '*/2' or '1-5/2'"
    return InvalidRule(field.name, f"{quote(item)} is not understood; {_instead_of(item) or plain}")


def _instead_of(item: str) -> str | None:
    return next((remedy for marks, remedy in _OF_OTHERS.items() if marks.search(item)), None)
