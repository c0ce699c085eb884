"""The days on which a zone's clock is set, as a rule meets them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from cron.days import ORIGIN
from cron.fields import FIELDS, flags_of
from cron.schedule import CronSchedule
from cron.zone import Stretch, zone_named

_SECOND = timedelta(seconds=1)
_WALL_ORIGIN = datetime(ORIGIN.year, ORIGIN.month, ORIGIN.day, tzinfo=UTC)
_HOURS = 1


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A change of the clock over times that a rule names.

    `at` is the change, UTC; `named` the first of those times on the wall clock, `YYYY-MM-DD HH:MM`;
    `is_gap` whether the clock skips it or shows it twice; `runs_at` when the rule occurs for it.
    """

    at: datetime
    zone: str
    named: str
    is_gap: bool
    runs_at: tuple[datetime, ...]


def clock_changes(schedule: CronSchedule, since: datetime, until: datetime) -> list[ClockChange]:
    """Return the changes of the clock in (since, until] that move, skip or repeat an occurrence.

    A rule of every hour is not concerned: it goes on with the time that passes.
    """
    hours = flags_of(FIELDS[_HOURS], schedule.rule.split(" ")[_HOURS])
    if all(hours):
        return []
    return list(_changes(schedule, since, until))


def _changes(schedule: CronSchedule, since: datetime, until: datetime) -> Iterator[ClockChange]:
    on_the_wall = CronSchedule(schedule.rule, "UTC")
    for before, after in pairwise(zone_named(schedule.zone).wildcard):
        at = datetime.fromtimestamp(after.start, UTC)
        if not since < at <= until or before.shift == after.shift:
            continue
        first, end = _concerned(before, after)
        named = on_the_wall.next(first - _SECOND)
        if named is None or named >= end:
            continue
        is_gap = before.shift < after.shift
        width = abs(after.shift - before.shift) * _SECOND
        around = (at - _SECOND, at) if is_gap else (at - width - _SECOND, at + width - _SECOND)
        runs_at = tuple(schedule.between(*around))
        yield ClockChange(at, schedule.zone, f"{named:%Y-%m-%d %H:%M}", is_gap, runs_at)


def _concerned(before: Stretch, after: Stretch) -> tuple[datetime, datetime]:
    """Return the span [first, end) of the wall clock that is skipped or shown twice."""
    shown = sorted((after.start + before.shift, after.start + after.shift))
    first, end = (_WALL_ORIGIN + second * _SECOND for second in shown)
    return first, end
