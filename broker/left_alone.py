"""Brokers of applications that failed a moment ago: they are left alone for a while.

One that accepts connections and then says nothing takes ten seconds each time, and all that the
tick sends after it waits.
"""

from runtime.clock import monotonic

SHORTEST_S, LONGEST_S = 5.0, 60.0
# By URL, until when.
_until: dict[str, float] = {}


def is_left_alone(url: str) -> bool:
    """Return whether a broker failed so recently that it is not asked again yet."""
    return monotonic() < _until.get(url, 0.0)


def leave_alone(url: str, spent_s: float) -> None:
    """Note that a broker failed, and how long that took."""
    _until[url] = monotonic() + left_alone_s(spent_s)


def left_alone_s(spent_s: float) -> float:
    """Return for how long a broker is left alone that took so long to fail."""
    return min(max(SHORTEST_S, 10 * spent_s), LONGEST_S)
