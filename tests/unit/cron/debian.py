"""Debian's cron, restated: its main loop, minute by minute, with an independent matcher.

Nothing here comes from `cron/`. Offsets are zoneinfo's, read from the tzdata wheel alone.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import NamedTuple
from zoneinfo import ZoneInfo

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
NAMES = {name: str(number) for number, name in enumerate(MONTHS, 1)} | {
    name: str(number) for number, name in enumerate(WEEKDAYS)
}
LIMITS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))

RULES = (
    *("* * * * *", "*/15 * * * *", "*/7 * * * *", "0 * * * *", "30 * * * *", "59 * * * *"),
    *("0 0 * * *", "30 0 * * *", "1 0 * * *", "0 1 * * *", "30 1 * * *", "45 1 * * *"),
    *("0 2 * * *", "30 2 * * *", "0,30 2 * * *", "59 2 * * *", "0 3 * * *", "15 3 * * *"),
    *("0 4 * * *", "59 23 * * *", "30 22-23 * * *", "* 2 * * *", "*/15 2 * * *", "* 0 * * *"),
    *("0 */2 * * *", "30 */2 * * *", "0 0-23 * * *", "0 1-5 * * *", "*/20 1-3 * * *"),
    *("10-50/10 0-4 * * *", "0 0 1 * *", "30 2 * * sun", "0 0 * * 5-7", "15 2 */2 * 0"),
    *("0 3 1,15 * 0", "*/30 0-3 25-31 3,10 *", "0-59 2 * * *", "45 2,3 * mar-apr *"),
)


class Fields(NamedTuple):
    """A rule as sets of numbers, with the flags that Debian's cron keeps."""

    times: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    is_wildcard: bool
    either: bool


class Wakeups(NamedTuple):
    """The UTC seconds at which the loop looked for jobs, by local minute."""

    wildcard: dict[int, list[int]]
    fixed: dict[int, list[int]]


class Change(NamedTuple):
    """A UTC second at which a zone's offset changes."""

    zone: str
    second: int
    before: int
    after: int


@cache
def fields(rule: str) -> Fields:
    texts = rule.split()
    minutes, hours, days, months, weekdays = (
        _numbers(text, *limits) for text, limits in zip(texts, LIMITS, strict=True)
    )
    return Fields(
        frozenset(hour * 60 + minute for hour in hours for minute in minutes),
        frozenset(days),
        frozenset(months),
        frozenset(weekday % 7 for weekday in weekdays),
        texts[0][0] == "*" or texts[1][0] == "*",
        texts[2][0] != "*" and texts[4][0] != "*",
    )


def _numbers(text: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        start, _, end = (f"{low}-{high}" if span == "*" else span).partition("-")
        first, last = (int(NAMES.get(part, part)) for part in (start, end or start))
        found |= {
            number for number in range(first, last + 1) if (number - first) % int(step or 1) == 0
        }
    return found


@cache
def day_matches(rule: str, day: int) -> bool:
    wanted = fields(rule)
    date = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)
    of_month, of_week = date.day in wanted.days, date.isoweekday() % 7 in wanted.weekdays
    is_day = (of_month or of_week) if wanted.either else (of_month and of_week)
    return is_day and date.month in wanted.months


def wheel_names() -> list[str]:
    names = files("tzdata").joinpath("zones").read_text().split()
    return sorted(set(names) - {"Factory"})


@cache
def wheel_zone(name: str) -> ZoneInfo:
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def offset(zone: ZoneInfo, second: int) -> int:
    shift = datetime.fromtimestamp(second, zone).utcoffset()
    assert shift is not None
    return shift // timedelta(seconds=1)


def changes(name: str, since: int, until: int, stride: int = 86400) -> Iterator[Change]:
    """Yield the changes of offset in (since, until]; one undone within a stride is not seen."""
    zone = wheel_zone(name)
    before = offset(zone, since)
    for start in range(since, until, stride):
        after = offset(zone, start + stride)
        if after != before:
            low, high = start, start + stride
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(zone, middle) == before else (low, middle)
            yield Change(name, high, before, after)
        before = after


def wakeups(change: Change, start: int, end: int) -> Wakeups:
    """Run the main loop in the UTC seconds [start, end) around one change of the clock."""

    def offset_at(second: int) -> int:
        return change.before if second < change.second else change.after

    seen = Wakeups({}, {})
    virtual = (start + offset_at(start)) // 60 - 1
    for second in range(start, end, 60):
        running = (second + offset_at(second)) // 60
        ahead = running - virtual
        if ahead == 1 or ahead > 180 or ahead <= -180:
            virtual = running
            _look(seen.wildcard, running, second)
            _look(seen.fixed, running, second)
        elif ahead > 0:
            for minute in range(virtual + 1, running + 1):
                _look(seen.fixed, minute, second)
                if ahead <= 5 or minute == running:
                    _look(seen.wildcard, minute, second)
            virtual = running
        else:
            _look(seen.wildcard, running, second)
    return seen


def _look(seen: dict[int, list[int]], minute: int, second: int) -> None:
    seen.setdefault(minute, []).append(second)


def occurrences(rule: str, seen: Wakeups) -> list[int]:
    """Return the UTC seconds at which the loop would have started the rule's job, once each."""
    where = seen.wildcard if fields(rule).is_wildcard else seen.fixed
    days = [
        day for day in range(min(where) // 1440, max(where) // 1440 + 1) if day_matches(rule, day)
    ]
    times = fields(rule).times
    return sorted(
        {second for day in days for time in times for second in where.get(day * 1440 + time, ())}
    )
