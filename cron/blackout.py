"""Days without occurrences, on the clock of a zone."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from cron.days import ORIGIN
from cron.zone import DAY_S, END, zone_named


class Piece(NamedTuple):
    """UTC seconds [begin, end) that are closed as a whole (then with the reason), or open."""

    begin: int
    end: int
    closed: str | None


class Blackout:
    """The closed days of a schedule on a zone's clock.

    `why` returns the reason for which a local day is closed, or None; each day is asked about once.
    Instants outside 1970 to 2199 are open. Raises cron.InvalidRule for an unknown zone.
    """

    __slots__ = ("_known", "_why", "_zone")

    def __init__(self, zone: str, why: Callable[[date], str | None]) -> None:
        self._zone, self._why = zone_named(zone), why
        self._known: dict[int, str | None] = {}

    def at(self, instant: datetime) -> Piece:
        """Return a piece of time around an instant: closed or open as a whole."""
        return self._piece(int(instant.timestamp()))

    def open_pieces(self, since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Yield the open times of (since, until] as half-open ranges (since, until], ascending."""
        opened = second = int(since.timestamp()) + 1
        last = int(until.timestamp())
        while second <= last:
            piece = self._piece(second)
            if piece.closed is not None:
                if opened < second:
                    yield _before(opened), _before(second)
                opened = piece.end
            second = piece.end
        if opened <= last:
            yield _before(opened), _before(last + 1)

    def _piece(self, second: int) -> Piece:
        if not 0 <= second < END:
            # No occurrence of a rule lies here; one of an interval may.
            return Piece(second, 0 if second < 0 else 1 << 62, None)
        period = self._zone.wildcard[bisect_right(self._zone.starts, second) - 1]
        day = (second + period.shift) // DAY_S
        if day not in self._known:
            self._known[day] = self._why(ORIGIN + timedelta(days=day))
        begin = day * DAY_S - period.shift
        return Piece(max(begin, period.start), min(begin + DAY_S, period.end), self._known[day])


def _before(second: int) -> datetime:
    return datetime.fromtimestamp(second - 1, UTC)
