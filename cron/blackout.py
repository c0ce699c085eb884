"""Times without occurrences: dates, yearly days and weekly windows on the clock of a zone."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from cron.days import ORIGIN
from cron.zone import END, zone_named

DAY_S = 86_400
DAY_MINUTES = 1_440
WEEK = 7


class Window(NamedTuple):
    """A weekly time: it begins on each of `weekdays` (Monday is 0) and is closed for a while.

    Minutes [first, until) count from midnight; `until` beyond 1,440 lies on the next day.
    """

    weekdays: tuple[int, ...]
    first: int
    until: int

    @property
    def name(self) -> str:
        """The window in words: `sat, sun`, `22:00 to 06:00 on fri`."""
        days = ", ".join(NAMES[day] for day in self.weekdays)
        if self.first == 0 and self.until == DAY_MINUTES:
            return days
        hours = f"{_clock(self.first)} to {_clock(self.until)}"
        return hours if len(self.weekdays) == WEEK else f"{hours} on {days}"


class YearlyDay(NamedTuple):
    """A day of each year."""

    month: int
    day: int

    @property
    def name(self) -> str:
        """The day as `12-25 of each year`."""
        return f"{self.month:02}-{self.day:02} of each year"


class Span(NamedTuple):
    """The instants [since, until), in UTC, and the name of that time."""

    since: datetime
    until: datetime
    name: str


class Piece(NamedTuple):
    """UTC seconds [begin, end) that are closed as a whole (then with the reason), or open."""

    begin: int
    end: int
    closed: str | None


NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class Blackout:
    """The closed times of a schedule: fixed spans, and days and windows on a zone's clock.

    A window that a clock change repeats is closed both times. Instants outside 1970 to 2199 are
    open. Raises cron.InvalidRule for an unknown zone. Immutable and thread-safe.
    """

    __slots__ = ("_ends", "_names", "_starts", "_week", "_yearly", "_zone")

    def __init__(
        self,
        zone: str,
        spans: Sequence[Span] = (),
        yearly: Sequence[YearlyDay] = (),
        windows: Sequence[Window] = (),
    ) -> None:
        merged = list(_merged(spans))
        self._starts = [begin for begin, _, _ in merged]
        self._ends = [end for _, end, _ in merged]
        self._names = [name for _, _, name in merged]
        self._zone = zone_named(zone)
        self._yearly = {(one.month, one.day): one.name for one in yearly}
        self._week = _week(windows)

    def at(self, instant: datetime) -> Piece:
        """Return a piece of time around an instant: closed or open as a whole."""
        return self._piece(int(instant.timestamp()))

    def open_pieces(self, since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Yield the open times of (since, until] as half-open ranges (since, until], ascending."""
        second, last = int(since.timestamp()) + 1, int(until.timestamp())
        while second <= last:
            piece = self._piece(second)
            if piece.closed is None:
                yield _before(second), _before(min(piece.end, last + 1))
            second = piece.end

    def _piece(self, second: int) -> Piece:
        if not 0 <= second < END:
            # No occurrence of a rule lies here; one of an interval may.
            return Piece(second, second + 1, None) if second < 0 else Piece(END, 1 << 62, None)
        index = bisect_right(self._starts, second) - 1
        if index >= 0 and second < self._ends[index]:
            return Piece(self._starts[index], self._ends[index], self._names[index])
        low = self._ends[index] if index >= 0 else 0
        high = self._starts[index + 1] if index + 1 < len(self._starts) else END
        if not self._yearly and not self._week:
            return Piece(low, high, None)
        stretch = self._zone.wildcard[bisect_right(self._zone.starts, second) - 1]
        begin, end, closed = self._on_the_wall(second + stretch.shift)
        return Piece(
            max(begin - stretch.shift, stretch.start, low),
            min(end - stretch.shift, stretch.end, high),
            closed,
        )

    def _on_the_wall(self, wall: int) -> tuple[int, int, str | None]:
        """Return the piece of a local day, in seconds of the wall clock since ORIGIN."""
        number, second = divmod(wall, DAY_S)
        midnight = number * DAY_S
        day = ORIGIN + timedelta(days=number)
        yearly = self._yearly.get((day.month, day.day)) if self._yearly else None
        if yearly is not None or not self._week:
            return midnight, midnight + DAY_S, yearly
        pieces = self._week[day.weekday()]
        starts = [one.begin for one in pieces]
        piece = pieces[bisect_right(starts, second) - 1]
        return midnight + piece.begin, midnight + piece.end, piece.closed


@lru_cache(maxsize=10_000)
def blackout(
    zone: str,
    spans: tuple[Span, ...] = (),
    yearly: tuple[YearlyDay, ...] = (),
    windows: tuple[Window, ...] = (),
) -> Blackout:
    """Return the closed times of a schedule, made once; raises cron.InvalidRule."""
    return Blackout(zone, spans, yearly, windows)


def _merged(spans: Sequence[Span]) -> Iterator[tuple[int, int, str]]:
    """Yield the spans as UTC seconds, ascending and without overlap; the first name stays."""
    begin, end, name = 0, 0, ""
    for span in sorted(spans):
        first, until = int(span.since.timestamp()), int(span.until.timestamp())
        if first >= end:
            if end > begin:
                yield begin, end, name
            begin, end, name = first, until, span.name
        else:
            end = max(end, until)
    if end > begin:
        yield begin, end, name


def _week(windows: Sequence[Window]) -> tuple[tuple[Piece, ...], ...]:
    """Return the pieces of each weekday, in seconds of its wall clock; none without windows."""
    if not windows:
        return ()
    return tuple(_weekday(day, windows) for day in range(WEEK))


def _weekday(day: int, windows: Sequence[Window]) -> tuple[Piece, ...]:
    closed: list[tuple[int, int, str]] = []
    for window in windows:
        if day in window.weekdays:
            closed.append((window.first, min(window.until, DAY_MINUTES), window.name))
        if (day - 1) % WEEK in window.weekdays and window.until > DAY_MINUTES:
            closed.append((0, window.until - DAY_MINUTES, window.name))
    edges = sorted({0, DAY_MINUTES, *(edge for one in closed for edge in one[:2])})
    return tuple(
        Piece(begin * 60, end * 60, next((why for a, b, why in closed if a <= begin < b), None))
        for begin, end in pairwise(edges)
    )


def _before(second: int) -> datetime:
    return datetime.fromtimestamp(second - 1, UTC)


def _clock(minute: int) -> str:
    return f"{minute % DAY_MINUTES // 60:02}:{minute % 60:02}"
