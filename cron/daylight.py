"""Clock changes of a zone that affect the occurrences of a rule."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from cron.days import ORIGIN
from cron.schedule import WallClock
from cron.zone import OffsetPeriod, zone_named

_SECOND = timedelta(seconds=1)
_WALL_ORIGIN = datetime(ORIGIN.year, ORIGIN.month, ORIGIN.day, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A clock change that skips or repeats a time of a rule.

    `at` is the change in UTC, `named` the first such time on the wall clock (`YYYY-MM-DD HH:MM`).
    The clock skips it if `is_gap`, else shows it twice; `runs_at` holds the occurrences for it.
    """

    at: datetime
    zone: str
    named: str
    is_gap: bool
    runs_at: tuple[datetime, ...]


def clock_changes(schedule: WallClock, since: datetime, until: datetime) -> list[ClockChange]:
    """Return the clock changes in (since, until] that move, skip or repeat an occurrence.

    A rule that matches every hour has none: it follows elapsed time.
    """
    return [] if schedule.is_hourly else list(_changes(schedule, since, until))


def _changes(schedule: WallClock, since: datetime, until: datetime) -> Iterator[ClockChange]:
    on_the_wall = schedule.on_another_clock("UTC")
    for before, after in pairwise(zone_named(schedule.zone).wildcard):
        at = datetime.fromtimestamp(after.start, UTC)
        if not since < at <= until or before.shift == after.shift:
            continue
        first, end = _affected(before, after)
        named = on_the_wall.next(first - _SECOND)
        if named is None or named >= end:
            continue
        is_gap = before.shift < after.shift
        width = abs(after.shift - before.shift) * _SECOND
        around = (at - _SECOND, at) if is_gap else (at - width - _SECOND, at + width - _SECOND)
        runs_at = tuple(schedule.between(*around))
        yield ClockChange(at, schedule.zone, f"{named:%Y-%m-%d %H:%M}", is_gap, runs_at)


def _affected(before: OffsetPeriod, after: OffsetPeriod) -> tuple[datetime, datetime]:
    """Return the wall-clock span [first, end) that is skipped or shown twice."""
    shown = sorted((after.start + before.shift, after.start + after.shift))
    first, end = (_WALL_ORIGIN + second * _SECOND for second in shown)
    return first, end
