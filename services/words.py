"""Instants and durations in words."""

from datetime import datetime, timedelta

from models.values import instant_or_dash
from models.values.durations import lasting
from models.values.zones import in_zone


def instant(at: datetime | None) -> str:
    """Return an instant in UTC to the second, `-` for none."""
    return instant_or_dash(at)


def both_clocks(at: datetime | None, zone: str) -> str:
    """Return an instant in UTC and in a zone, `-` for none."""
    if at is None:
        return "-"
    return instant(at) if zone == "UTC" else f"{instant(at)}  ({in_zone(at, zone)} {zone})"


def brief(seconds: float) -> str:
    """Return a duration, to the millisecond if it is short."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else lasting(timedelta(seconds=seconds))
