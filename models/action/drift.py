"""Intervals of whole days: exact hours, whose local time moves when the clocks change."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from models.values.durations import format_span
from models.values.zones import offsets_of

DAY = timedelta(days=1)
YEAR = timedelta(days=366)


def drift(every: timedelta, starting_at: datetime, zone: str) -> Iterator[str]:
    """Yield a warning about an interval of whole days in a zone whose clocks change.

    It shows the recurrence rule that keeps the local time.
    """
    changes = {offset for _, offset in offsets_of(zone, starting_at, starting_at + YEAR)}
    if every % DAY or len(changes) < 2:
        return
    same = json.dumps(_same_clock(every, starting_at.astimezone(ZoneInfo(zone)), zone))
    yield (
        f'when.every "{format_span(every)}": keeps exact hours, so its local time moves by the '
        f"clock changes of {zone}; write {same} to keep the local time"
    )


def _same_clock(every: timedelta, local: datetime, zone: str) -> dict[str, str]:
    """Return the recurrence rule of so many days, or weeks, at a local time."""
    weeks, days = divmod(every // DAY, 7)
    frequency, number = ("DAILY", every // DAY) if days else ("WEEKLY", weeks)
    interval = "" if number == 1 else f";INTERVAL={number}"
    return {
        "rrule": f"FREQ={frequency}{interval}",
        "at": f"{local:%H:%M}",
        "timezone": zone,
        "starting_at": f"{local:%Y-%m-%d}",
    }
