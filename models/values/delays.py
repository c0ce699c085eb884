"""Delays after an event: when it is due, and which events are due in a range.

Due is the event's instant, rounded up to a whole second, plus the delay; docs/explanation/time.md.
"""

from datetime import UTC, datetime, timedelta

SECOND = timedelta(seconds=1)


def rounded_up(instant: datetime) -> datetime:
    """Return the first whole second at or after `instant`, in UTC."""
    at = instant.astimezone(UTC)
    return at.replace(microsecond=0) + SECOND if at.microsecond else at


def due_after(event_at: datetime, delay: timedelta) -> datetime | None:
    """Return when an event at `event_at` is due, in UTC; None beyond the calendar's end."""
    try:
        return rounded_up(event_at) + delay
    except OverflowError:
        return None


def events_due(
    since: datetime, until: datetime, delay: timedelta
) -> tuple[datetime, datetime] | None:
    """Return the range (since, until] of the events that are due in (since, until].

    None if no event can be: within a second, or before the calendar's beginning.
    """
    try:
        first, last = _floor(since - delay), _floor(until - delay)
    except OverflowError:
        return None
    return (first, last) if first < last else None


def _floor(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(microsecond=0)
