"""Delays after an event: when it is due, and which events may be due in a range.

Due is the event's instant, rounded up to a whole second, plus the delay: years and months on the
wall clock first, then the exact rest; docs/explanation/time.md.
"""

from bisect import bisect_right
from calendar import monthrange
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache

from cron.zone import END, Stretch, zone_named
from models.values.durations import format_span, parse_delay
from models.values.zones import instant_of

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)
NOTHING = timedelta(0)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A stretch's wall clock counts from here (cron/zone.py).
_WALL_ORIGIN = datetime(1969, 1, 1)  # noqa: DTZ001 - a wall clock has no zone


@dataclass(frozen=True, slots=True)
class Delay:
    """A delay: months on the wall clock of `zone` first, then an exact span."""

    months: int
    exact: timedelta
    zone: str

    def due(self, event_at: datetime) -> datetime | None:
        """Return when an event at `event_at` is due, in UTC; None beyond the calendar's end."""
        try:
            at = rounded_up(event_at)
            if self.months:
                wall = _add_months(_wall(at, self.zone), self.months)
                at = instant_of(wall, self.zone)
            return at + self.exact
        except (ValueError, OverflowError):
            return None

    def instants(self, since: datetime, until: datetime) -> list[tuple[datetime, datetime]]:
        """Return the ranges (since, until] of events that may be due in (since, until].

        They contain every such event, ascend and do not overlap; `due` decides exactly.
        """
        try:
            first = _floor(since - self.exact) + SECOND
            last = _floor(until - self.exact)
        except OverflowError:
            return []
        if first > last:
            return []
        if not self.months:
            return [(first - SECOND, last)]
        return _merged(_sources(first, last, self.months, self.zone))


@lru_cache(maxsize=10_000)
def delay_of(delay: str, zone: str | None) -> Delay:
    """Return the delay of an event rule, years and months by the clock of `zone` (None: UTC).

    Raises ValueError for an invalid delay, cron.InvalidRule for an unknown zone.
    """
    if delay == format_span(NOTHING):
        return Delay(0, NOTHING, "UTC")
    calendar, exact = parse_delay(delay)
    months = calendar.years * 12 + calendar.months
    return Delay(months, exact, zone_named(zone or "UTC").name)


def rounded_up(instant: datetime) -> datetime:
    """Return the first whole second at or after `instant`, in UTC."""
    at = instant.astimezone(UTC)
    return at.replace(microsecond=0) + SECOND if at.microsecond else at


def _floor(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(microsecond=0)


def _seconds(instant: datetime) -> int:
    return (instant - _EPOCH) // SECOND


def _stretch_at(second: int, zone: str) -> Stretch:
    known = zone_named(zone)
    return known.wildcard[max(0, bisect_right(known.starts, second) - 1)]


def _wall(at: datetime, zone: str) -> datetime:
    second = _seconds(at)
    if not 0 <= second < END:
        raise ValueError("lies outside the years 1970 to 2199")
    return _WALL_ORIGIN + timedelta(seconds=second + _stretch_at(second, zone).shift)


def _add_months(wall: datetime, months: int) -> datetime:
    year, month = _shifted(wall.year, wall.month, months)
    return wall.replace(year=year, month=month, day=min(wall.day, monthrange(year, month)[1]))


def _shifted(year: int, month: int, months: int) -> tuple[int, int]:
    count = year * 12 + month - 1 + months
    return count // 12, count % 12 + 1


def _sources(
    first: datetime, last: datetime, months: int, zone: str
) -> Iterator[tuple[datetime, datetime]]:
    """Yield the ranges (since, until] of events whose months end in [first, last], in seconds."""
    for shown_from, shown_to in _shown(first, last, zone):
        for begin, end in _months_before(shown_from, shown_to, months):
            yield from _read_at(begin, end, zone)


def _shown(first: datetime, last: datetime, zone: str) -> Iterator[tuple[datetime, datetime]]:
    """Yield the spans [from, to] of the wall clock that belong to the instants [first, last].

    A time skipped by a gap is read as the gap's end.
    """
    from_s, to_s = max(0, _seconds(first)), min(END - 1, _seconds(last))
    before: Stretch | None = None
    for stretch in zone_named(zone).wildcard:
        begin, end = max(from_s, stretch.start), min(to_s, stretch.end - 1)
        if begin <= end:
            skipped = begin + stretch.shift
            if before is not None and begin == stretch.start:
                skipped = min(skipped, begin + before.shift)
            yield _at_wall(skipped), _at_wall(end + stretch.shift)
        before = stretch


def _months_before(
    shown_from: datetime, shown_to: datetime, months: int
) -> Iterator[tuple[datetime, datetime]]:
    """Yield the spans of the wall clock that `months` later lie in [shown_from, shown_to].

    The end of a month may map up to four days to one.
    """
    day = shown_from.date()
    while day <= shown_to.date():
        begin = shown_from.time() if day == shown_from.date() else time.min
        end = shown_to.time() if day == shown_to.date() else time(23, 59, 59)
        for source in _days_before(day, months):
            yield datetime.combine(source, begin), datetime.combine(source, end)
        day += DAY


def _days_before(day: date, months: int) -> Iterator[date]:
    year, month = _shifted(day.year, day.month, -months)
    if year < 1:
        return
    longest = monthrange(year, month)[1]
    is_last = day.day == monthrange(day.year, day.month)[1]
    for number in range(day.day, (longest if is_last else day.day) + 1):
        if number <= longest:
            yield date(year, month, number)


def _read_at(begin: datetime, end: datetime, zone: str) -> Iterator[tuple[datetime, datetime]]:
    """Yield the ranges of instants at which the wall clock shows [begin, end]."""
    from_s, to_s = _wall_seconds(begin), _wall_seconds(end)
    known = zone_named(zone)
    # Two offsets of a zone differ by a day at most (Apia, 2011).
    about_s = from_s - known.wildcard[0].shift - 2 * 86_400
    for stretch in known.wildcard[max(0, bisect_right(known.starts, about_s) - 1) :]:
        if stretch.start + stretch.shift > to_s + 2 * 86_400:
            return
        first = max(from_s - stretch.shift, stretch.start)
        last = min(to_s - stretch.shift, stretch.end - 1)
        if first <= last:
            yield _EPOCH + timedelta(seconds=first - 1), _EPOCH + timedelta(seconds=last)


def _at_wall(shown: int) -> datetime:
    return _WALL_ORIGIN + timedelta(seconds=shown)


def _wall_seconds(wall: datetime) -> int:
    return (wall - _WALL_ORIGIN) // SECOND


def _merged(ranges: Iterable[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    found: list[tuple[datetime, datetime]] = []
    for since, until in sorted(ranges):
        if found and since <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], until))
        else:
            found.append((since, until))
    return found
