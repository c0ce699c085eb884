"""Fuzzed cron rules: a rule on the first line, a zone on the second, an instant on the third."""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from croniter import croniter

from cron import (
    CronSchedule,
    InvalidRule,
    clock_changes,
    in_words,
    oversized_steps,
)

START = datetime(2026, 11, 23, 6, tzinfo=UTC)
SPAN = timedelta(days=2)
LONGEST_ERROR = 400
# What croniter reads as Debian's cron does: no equal ranges, no stars in lists, no Sunday as 7.
_PLAIN = re.compile(r"\*|\*/[2-9]|\d{1,2}(?:-\d{1,2})?(?:,\d{1,2}(?:-\d{1,2})?)*")


def check(given: bytes) -> None:
    """Read rule and zone; compare the answers about one instant with each other."""
    rule, zone, instant = [*given.decode("utf-8", "replace").split("\n"), "", ""][:3]
    try:
        assert in_words(rule)
        schedule = CronSchedule(rule, zone)
    except InvalidRule as error:
        assert 0 < len(str(error)) < LONGEST_ERROR
        return
    assert CronSchedule(schedule.rule, schedule.zone) == schedule
    assert in_words(schedule.rule)
    list(oversized_steps(schedule.rule))
    now = _instant(instant)
    _increases(schedule, now)
    _is_one_set(schedule, now)
    if schedule.zone == "UTC":
        _agrees_with_croniter(schedule, now)


def _instant(text: str) -> datetime:
    with suppress(ValueError, OverflowError):
        read = datetime.fromisoformat(text)
        read = (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
        if datetime(1970, 1, 5, tzinfo=UTC) <= read <= datetime(2199, 12, 20, tzinfo=UTC):
            return read
    return START


def _increases(schedule: CronSchedule, now: datetime) -> None:
    last = now
    for _ in range(5):
        found = schedule.next(last)
        if found is None:
            break
        assert found > last, "the next occurrence is not later"
        before = schedule.previous(found)
        assert before is None or before <= last, "an occurrence was passed over"
        assert schedule.previous(found + timedelta(seconds=1)) == found
        last = found


def _is_one_set(schedule: CronSchedule, now: datetime) -> None:
    found = schedule.between(now, now + SPAN)
    assert found == sorted(set(found))
    assert schedule.count(now, now + SPAN) == len(found)
    assert schedule.last(now, now + SPAN) == (found[-1] if found else None)
    list(clock_changes(schedule, now, now + SPAN))


def _agrees_with_croniter(schedule: CronSchedule, now: datetime) -> None:
    fields = schedule.rule.split()
    if len(fields) != 5 or not all(_PLAIN.fullmatch(one) for one in fields):
        return
    ranges = re.findall(r"(\d+)-(\d+)", schedule.rule)
    if "7" in fields[4] or any(int(low) == int(high) for low, high in ranges):
        return
    following = schedule.next(now)
    if following is None or following > now + timedelta(days=366 * 40):
        return
    other = croniter(schedule.rule, now, implement_cron_bug=True)
    assert other.get_next(datetime, start_time=now) == following, "croniter disagrees"
