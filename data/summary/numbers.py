"""Human-readable numbers and time spans."""

from datetime import datetime, timedelta

# Smaller differences come from rounding when sums are added in another order.
NO_CHANGE = 1e-9
# Larger numbers are shown by their power of ten.
LARGE = 1e15
MINUS = "−"  # noqa: RUF001


def shown_number(value: float) -> str:
    """Return `value` with thousands separators and at most two decimals."""
    size = abs(value)
    if 0 < size < 0.01:
        return f"{MINUS if value < 0 else ''}{size:.2g}"
    sign = MINUS if value < 0 else ""
    if size >= LARGE:
        return f"{sign}{size:.2e}"
    if abs(size - round(size)) < 0.005:
        return f"{sign}{round(size):,}"
    return f"{sign}{size:,.2f}"


def short_number(value: float) -> str:
    """Return `value` in at most seven characters, for a chart: `1.2k`, `−34M`."""
    size, sign = abs(value), MINUS if value < 0 else ""
    for power, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= LARGE:
            return f"{sign}{size:.0e}".replace("e+", "e")
        if size >= power:
            return f"{sign}{size / power:.3g}{letter}"
    return f"{sign}{size:.3g}"


def shown_change(value: float) -> str:
    """Return a change since the last summary: `+120`, `−3.50`, `no change`."""
    if abs(value) < NO_CHANGE:
        return "no change"
    return f"+{shown_number(value)}" if value > 0 else shown_number(value)


def age(since: datetime, now: datetime) -> str:
    """Return the time from `since` to `now` in words: `3 hours ago`."""
    seconds = max(now - since, timedelta(0)).total_seconds()
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        count = int(seconds // length)
        if count:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"
