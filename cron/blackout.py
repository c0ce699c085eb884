"""Days without occurrences: dates, days of each year and weekdays on the clock of a zone."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from cron.days import ORIGIN
from cron.zone import END, zone_named

DAY_S = 86_400


class YearlyDay(NamedTuple):
    """A day of each year, and the calendar that has it."""

    month: int
    day: int
    calendar: str = ""

    @property
    def name(self) -> str:
        """The day as `12-25 of each year`, with its calendar."""
        named = f" of calendar {self.calendar}" if self.calendar else ""
        return f"{self.month:02}-{self.day:02} of each year{named}"


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
    """The closed times of a schedule: fixed spans, and days on a zone's clock.

    Weekdays are 0 (Monday) to 6. Instants outside 1970 to 2199 are open. Raises cron.InvalidRule
    for an unknown zone. Immutable and thread-safe.
    """

    __slots__ = ("_ends", "_names", "_starts", "_weekdays", "_yearly", "_zone")

    def __init__(
        self,
        zone: str,
        spans: Sequence[Span] = (),
        yearly: Sequence[YearlyDay] = (),
        weekdays: Sequence[int] = (),
    ) -> None:
        merged = list(_merged(spans))
        self._starts = [begin for begin, _, _ in merged]
        self._ends = [end for _, end, _ in merged]
        self._names = [name for _, _, name in merged]
        self._zone = zone_named(zone)
        self._yearly = {(one.month, one.day): one.name for one in yearly}
        self._weekdays = frozenset(weekdays)

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
        if not self._yearly and not self._weekdays:
            return Piece(low, high, None)
        period = self._zone.wildcard[bisect_right(self._zone.starts, second) - 1]
        begin, end, closed = self._on_the_wall(second + period.shift)
        return Piece(
            max(begin - period.shift, period.start, low),
            min(end - period.shift, period.end, high),
            closed,
        )

    def _on_the_wall(self, wall: int) -> tuple[int, int, str | None]:
        """Return the piece of a local day, in seconds of the wall clock since ORIGIN."""
        number = wall // DAY_S
        day = ORIGIN + timedelta(days=number)
        closed = self._yearly.get((day.month, day.day))
        if closed is None and day.weekday() in self._weekdays:
            closed = NAMES[day.weekday()]
        return number * DAY_S, (number + 1) * DAY_S, closed


@lru_cache(maxsize=10_000)
def blackout(
    zone: str,
    spans: tuple[Span, ...] = (),
    yearly: tuple[YearlyDay, ...] = (),
    weekdays: tuple[int, ...] = (),
) -> Blackout:
    """Return the closed times of a schedule, made once; raises cron.InvalidRule."""
    return Blackout(zone, spans, yearly, weekdays)


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


def _before(second: int) -> datetime:
    return datetime.fromtimestamp(second - 1, UTC)
