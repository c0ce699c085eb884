"""docs/explanation/time.md: its table of clock changes is what the kernel answers."""

import re
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from cron import CronSchedule, WallClock, in_words
from cron.recurrence import read_recurrence
from cron.recurrent_days import RecurrentMinutes
from tests.docs.pages import text_of

TIME = text_of("explanation/time")
ROWS = re.findall(r"^\| `(.+?)` \| (\w+/\w+) \| ([\d-]{10}) \| (.+?) \|$", TIME, re.M)
RULES = text_of("reference/action")
SIGNS = re.findall(r"^\| `(\S+ \S+ \S+ \S+ \S+)` \| (at .+?) \|$", RULES, re.M)
RECURRENCES = re.findall(r"^\| `(FREQ=\S+)` \| .+? \| ([\d, -]+) \|$", RULES, re.M)


@pytest.mark.parametrize(("rule", "days"), RECURRENCES)
def test_each_example_of_a_recurrence_runs_when_the_page_says(rule: str, days: str) -> None:
    minutes = RecurrentMinutes(read_recurrence(rule), [540], date(2026, 11, 25))
    clock, at = WallClock(minutes, "UTC"), datetime(2026, 11, 25, tzinfo=UTC)
    found: list[str] = []
    while len(found) < len(days.split(", ")):
        at = clock.next(at) or at
        found.append(f"{at:%Y-%m-%d}")

    assert days.split(", ") == found


@pytest.mark.parametrize(("rule", "words"), SIGNS)
def test_each_example_of_a_rule_means_what_the_page_says(rule: str, words: str) -> None:
    assert words == in_words(rule)


def test_the_page_of_actions_shows_each_sign() -> None:
    assert len(SIGNS) >= 8
    assert len(RECURRENCES) >= 8


@pytest.mark.parametrize(("rule", "zone", "day", "shown"), ROWS)
def test_each_example_of_a_clock_change_is_true(rule: str, zone: str, day: str, shown: str) -> None:
    clock = ZoneInfo(zone)
    start = datetime.combine(date.fromisoformat(day), time(), clock).astimezone(UTC)
    end = datetime.combine(date.fromisoformat(day) + timedelta(1), time(), clock).astimezone(UTC)
    second = timedelta(seconds=1)

    found = CronSchedule(rule, zone).between(start - second, end - second)
    told = ", ".join(at.astimezone(clock).strftime("%H:%M %z") for at in found)
    assert (told or "never") == shown


def test_the_table_is_found() -> None:
    assert len(ROWS) == 10
