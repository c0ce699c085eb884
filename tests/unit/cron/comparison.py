"""CronSchedule against Debian's main loop around one change of the clock."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from cron import CronSchedule
from tests.unit.cron.debian import Change, occurrences, wakeups

HOUR = 3600
# The instants of the questions, in seconds from the change.
PROBES = (-3 * HOUR, -HOUR, -1, 0, 1799, HOUR, 2 * HOUR + 1, 24 * HOUR)


class Tally(NamedTuple):
    """The number of compared answers, and those that differed from what Debian's cron did."""

    compared: int
    differences: list[str]


def utc(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def compare(changes: Iterable[Change], rules: Iterable[str]) -> Tally:
    """Ask each rule for next, previous, last, count and between around each change."""
    compared, differences = 0, list[str]()
    for change in changes:
        low, high = change.second - 5 * HOUR, change.second + 27 * HOUR
        seen = wakeups(change, low, high)
        for rule in rules:
            found = [second for second in occurrences(rule, seen) if second > low]
            for question, at, answer, expected in _answers(change, rule, found, (low, high - 1)):
                compared += 1
                if answer != expected:
                    where = f"{question} of {rule} in {change.zone} at {at}"
                    differences.append(f"{where}: {answer}, by Debian {expected}")
    return Tally(compared, differences)


def _answers(
    change: Change, rule: str, found: list[int], window: tuple[int, int]
) -> Iterator[tuple[str, datetime, object, object]]:
    """Yield questions, each with its instant, what a schedule answers, and what Debian does."""
    schedule = CronSchedule(rule, change.zone)
    instants = [utc(second) for second in found]
    start, end = map(utc, window)
    yield "between", start, schedule.between(start, end), instants
    yield "count", start, schedule.count(start, end), len(found)
    for probe in PROBES:
        at = utc(change.second + probe)
        before = bisect_left(found, change.second + probe)
        done = bisect_right(found, change.second + probe)
        if done < len(found):
            yield "next", at, schedule.next(at), instants[done]
        if before:
            yield "previous", at, schedule.previous(at), instants[before - 1]
        yield "last", at, schedule.last(start, at), instants[done - 1] if done else None
        yield "count", at, schedule.count(at, end), len(found) - done
