"""The expected end of a running operation, from earlier ones of its action."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from statistics import median

# Fewer give no estimate; of more, only the newest count.
LEAST_KNOWN = 3
MOST_KNOWN = 10


def eta_of(started_at: datetime, durations: Sequence[timedelta]) -> datetime | None:
    """Return the expected end; None before three earlier operations succeeded.

    `durations` are those of successful operations, newest first. The median ignores a single one
    that waited for a slow source.
    """
    known = [duration.total_seconds() for duration in durations[:MOST_KNOWN]]
    if len(known) < LEAST_KNOWN:
        return None
    return started_at + timedelta(seconds=median(known))
