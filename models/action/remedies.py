"""What to write instead of a wrong rule: advice that works when followed to the letter."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from cron import parse_rule
from cron.recurrence import read_recurrence
from models.document import as_object
from models.parsing import LEAST_TICK
from models.values import parse_instant
from models.values.durations import format_span, parse_span

_TICK = re.compile(r"(?<=SCHED_SCHEDULER_TICK_SECONDS to )\d+")
# The kinds of rule that a bare value may stand for, each with its check.
_BARE: Mapping[str, Callable[[Any], object]] = {
    "cron_rule": parse_rule,
    "rrule": read_recurrence,
    "due_date": partial(parse_instant, zone="UTC"),
    "every": partial(parse_span, seconds_allowed=True),
}


def as_rule(value: object, *, in_list: bool = False) -> dict[str, Any]:
    """Return the object `value`; raises ValueError with the object that a bare value stands for.

    A list holds no intervals.
    """
    if isinstance(value, Mapping):
        return as_object(value)
    for kind, check in _BARE.items():
        if in_list and kind == "every":
            continue
        try:
            check(value)
        except ValueError:
            continue
        raise ValueError(f"write an object: {json.dumps({kind: value})}")
    raise ValueError('write an object such as {"cron_rule": "0 7 * * 1"}')


def shorter_than_a_tick(every: timedelta, tick: timedelta) -> str:
    """Return what to write, and the setting that allows `every`: a tick divides the minute."""
    remedy = f'is shorter than a tick; write "{format_span(tick)}" or more'
    if every < LEAST_TICK:
        return remedy
    seconds = int(every.total_seconds())
    allowed = next(second for second in range(min(seconds, 60), 0, -1) if 60 % second == 0)
    return f"{remedy}, or set SCHED_SCHEDULER_TICK_SECONDS to {allowed}"


def with_one_tick(remedies: Sequence[str]) -> list[str]:
    """Return remedies that name the same tick: the one that allows all of these intervals."""
    ticks = [int(tick) for one in remedies for tick in _TICK.findall(one)]
    return [_TICK.sub(str(min(ticks)), one) for one in remedies] if ticks else list(remedies)
