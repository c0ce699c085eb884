"""`H`: a value that a hash fixes, as Jenkins has it, so that not all rules are due at once.

`H` is one value of its field, `H(0-29)` one of a range, `H/15` each 15th from one of the first 15.
The hash is of a seed and the field's name: minute and hour are independent, and everybody who knows
the seed finds the same rule.
"""

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import product
from typing import NamedTuple

from cron.errors import InvalidRule, quote
from cron.fields import DAY, FIELDS, FOREIGN, MONTH, WEEKDAY, Field, number_of

_MARK = re.compile(r"(?<![a-z])h(?![a-z])", re.IGNORECASE)
_ITEM = re.compile(r"h(?:\(([a-z]+|\d{1,9})-([a-z]+|\d{1,9})\))?(?:/(\d{1,9}))?", re.ASCII)
# The days that each month has, and Sunday once.
_HIGHEST = {DAY: 28, WEEKDAY: 6}


class Hashed(NamedTuple):
    """The values of one item that has `H`: of `low` to `high`, ends included."""

    low: int
    high: int
    step: int | None

    def item(self, number: int) -> str:
        """Return the item that a number selects, without `H`."""
        if self.step is None:
            return str(self.low + number % (self.high - self.low + 1))
        return f"{self.low + number % self.step}-{self.high}/{self.step}"


def has_hash(rule: str) -> bool:
    """Return whether a text has an `H`."""
    return _MARK.search(rule) is not None


def with_capital_h(text: str) -> str:
    """Return a field with its `H` as a capital, as Jenkins writes it."""
    return _MARK.sub("H", text)


def hashed_of(field: Field, item: str) -> Hashed | None:
    """Return what an item with `H` writes, None for one without; raises InvalidRule."""
    lowered = item.lower()
    if not has_hash(lowered):
        return None
    found = _ITEM.fullmatch(lowered)
    if found is None:
        raise InvalidRule(field.name, f"{quote(item)}: {FOREIGN['h']}")
    start, end, step = found.groups()
    low = field.low if start is None else number_of(field, start)
    high = _HIGHEST.get(field, field.high) if end is None else number_of(field, end)
    if low > high:
        raise InvalidRule(field.name, f"{quote(item)} runs backwards; write 'H({high}-{low})'")
    return Hashed(low, high, None if step is None else _step(field, item, low, high))


def fixed(rule: str, seed: bytes) -> str:
    """Return a normalised rule in which each `H` is what `seed` selects."""
    return _selected(rule, _numbers(seed))


def possible(rule: str) -> Iterator[str]:
    """Yield what a normalised rule may become: if each of these fires, every one does.

    Only a late day and a short month exclude each other.
    """
    fields = dict(zip(FIELDS, rule.split(" "), strict=True))
    days = (0, -1) if has_hash(fields[DAY]) else (0,)
    months = range(MONTH.high) if has_hash(fields[MONTH]) else (0,)
    for day, month in product(days, months):
        yield _selected(rule, {DAY: day, MONTH: month})


def _selected(rule: str, numbers: Mapping[Field, int]) -> str:
    return " ".join(
        ",".join(_item(field, item, numbers.get(field, 0)) for item in text.split(","))
        for field, text in zip(FIELDS, rule.split(" "), strict=True)
    )


def _item(field: Field, item: str, number: int) -> str:
    hashed = hashed_of(field, item)
    return item if hashed is None else hashed.item(number)


def _numbers(seed: bytes) -> Mapping[Field, int]:
    """Return a number for each field, independent of the others."""
    return {
        field: int.from_bytes(sha256(seed + field.name.encode()).digest()[:8], "big")
        for field in FIELDS
    }


def _step(field: Field, item: str, low: int, high: int) -> int:
    step, size = int(item.rpartition("/")[2]), high - low + 1
    if 2 <= step <= size:
        return step
    whole = f"{low}-{high}"
    one = item.partition("/")[0].upper()
    if step == 1:
        raise InvalidRule(field.name, f"{quote(item)} is each value; write '{whole}'")
    problem = f"{quote(item)} has a step that is not from 2 to {size}; write '{one}' for one value"
    raise InvalidRule(field.name, problem)
