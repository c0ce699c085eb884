"""Steps that exceed their range, and the intervals that they were to write."""

from functools import lru_cache
from typing import NamedTuple

from cron.fields import DAY, FIELDS, HOUR, MINUTE, Field, span_of
from cron.intervals import UNIT_S, interval_of
from cron.rule import normalised
from cron.signs import sign_of

_UNITS = {MINUTE: "minute", HOUR: "hour", DAY: "day"}


class OversizedStep(NamedTuple):
    """An item of a rule whose step leaves only `value`.

    `every` is the interval that was meant, such as `PT90M`; None if none was.
    """

    field: str
    item: str
    value: int
    every: str | None


@lru_cache(maxsize=2048)
def oversized_steps(text: str) -> tuple[OversizedStep, ...]:
    """Return each item of a rule whose step exceeds its range.

    Debian's cron accepts such a step, which often stands for an interval: `*/90` minutes.
    """
    fields = normalised(text).split(" ")
    found = []
    for field, items in zip(FIELDS, fields, strict=True):
        for item in items.split(","):
            if sign_of(field, item) is not None:
                continue
            first, last, step = span_of(field, item)
            if step > max(last - first, 1):
                is_alone = items == item and item.startswith("*")
                every = _meant(field, step, fields) if is_alone else None
                found.append(OversizedStep(field.name, item, first, every))
    return tuple(found)


def _meant(field: Field, step: int, fields: list[str]) -> str | None:
    """Return the interval that a step of `*` means: one of every minute, hour or day.

    A smaller field holds one value, a larger one is `*`; weekdays and months are no unit.
    """
    place = FIELDS.index(field)
    is_plain = all(one.isdigit() for one in fields[:place]) and set(fields[place + 1 :]) <= {"*"}
    return interval_of(step * UNIT_S[_UNITS[field]]) if field in _UNITS and is_plain else None
