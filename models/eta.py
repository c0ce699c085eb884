"""When a running operation will be done, learned from earlier ones of its action."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from statistics import median

# Of fewer nothing is said; of more the newest count.
LEAST_KNOWN = 3
MOST_KNOWN = 10


def eta_of(started_at: datetime, durations: Sequence[timedelta]) -> datetime | None:
    """Return when it should be done; None before three earlier ones succeeded.

    `durations` are of successful operations, newest first. Their median counts: one that waited
    for a slow source says nothing about the next.
    """
    known = [duration.total_seconds() for duration in durations[:MOST_KNOWN]]
    if len(known) < LEAST_KNOWN:
        return None
    return started_at + timedelta(seconds=median(known))
