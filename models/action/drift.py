"""Intervals of whole days: exact hours, whose local time moves when the clocks change."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from cron.fields import WEEKDAYS
from models.values.durations import format_span
from models.values.zones import offsets_of

DAY, WEEK = timedelta(days=1), timedelta(days=7)
YEAR = timedelta(days=366)


def drift(every: timedelta, starting_at: datetime, zone: str) -> Iterator[str]:
    """Yield a warning about an interval of whole days in a zone whose clocks change.

    It shows the cron rule that keeps the local time of each day or week.
    """
    changes = {offset for _, offset in offsets_of(zone, starting_at, starting_at + YEAR)}
    if every % DAY or len(changes) < 2:
        return
    rule = _same_clock(every, starting_at.astimezone(ZoneInfo(zone)))
    same = json.dumps({"cron_rule": rule, "timezone": zone})
    yield (
        f'when.every "{format_span(every)}": keeps exact hours, so its local time moves by the '
        f"clock changes of {zone}" + (f"; write {same} to keep the local time" if rule else "")
    )


def _same_clock(every: timedelta, local: datetime) -> str | None:
    """Return the cron rule for each day or week at a local time; None for other intervals."""
    if every not in {DAY, WEEK}:
        return None
    weekday = "*" if every == DAY else WEEKDAYS[local.isoweekday() % 7]
    return f"{local.minute} {local.hour} * * {weekday}"
