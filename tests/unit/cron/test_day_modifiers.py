"""Rules with `L`, `W` and `#`, against a count of days that shares no code with ours."""

import calendar
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest

from cron import CronSchedule, InvalidRule
from runtime.clock import use_pinned_zones

ZONES = (
    *("UTC", "Europe/Paris", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"),
    *("Pacific/Apia", "America/St_Johns", "Africa/Cairo", "Asia/Tokyo", "America/Havana"),
    *("Pacific/Chatham", "Europe/Dublin"),
)
NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
RULES = 200
FIRST, LAST = date(2020, 1, 1), date(2030, 1, 1)
Day = tuple[int, int, int, int]
Holds = Callable[[Day], bool]


@cache
def all_days() -> list[tuple[date, Day]]:
    """Return each day with day, month, weekday (0 is Sunday), and the length of its month."""
    days = [FIRST + timedelta(n) for n in range((LAST - FIRST).days)]
    return [
        (
            one,
            (one.day, one.month, one.isoweekday() % 7, calendar.monthrange(one.year, one.month)[1]),
        )
        for one in days
    ]


def nearest_to(wanted: Callable[[int], int]) -> Holds:
    """Return what tells the working day that is nearest to the `wanted` day of its month."""

    def holds(day: Day) -> bool:
        number, _, weekday, length = day
        target = wanted(length)
        if not 1 <= target <= length or weekday in {0, 6}:
            return False
        its_weekday = (weekday + target - number) % 7
        if its_weekday == 6:
            return number == (target - 1 if target > 1 else 3)
        if its_weekday == 0:
            return number == (target + 1 if target < length else target - 2)
        return number == target

    return holds


def day_items(random_: random.Random) -> list[tuple[str, Holds]]:
    n, back = random_.randint(1, 31), random_.randint(1, 30)
    return [
        (str(n), lambda day: day[0] == n),
        ("L", lambda day: day[0] == day[3]),
        (f"L-{back}", lambda day: day[0] == day[3] - back),
        (f"{n}W", nearest_to(lambda _: n)),
        ("LW", nearest_to(lambda length: length)),
        (f"l-{back}w", nearest_to(lambda length: length - back)),
    ]


def weekday_items(random_: random.Random) -> list[tuple[str, Holds]]:
    weekday, nth = random_.randrange(7), random_.randint(1, 5)
    named = random_.choice((str(weekday), NAMES[weekday], str(weekday or 7)))
    last = lambda day: day[2] == weekday and day[0] + 7 > day[3]  # noqa: E731
    return [
        (named, lambda day: day[2] == weekday),
        (f"{named}#{nth}", lambda day: day[2] == weekday and (day[0] - 1) // 7 + 1 == nth),
        (f"{named}L", last),
        (f"{named}#L", last),
        (f"L{named}", last),
    ]


def rule_of(seed: int) -> tuple[str, Holds]:
    """Return a random rule, without its time, and what holds for its days."""
    random_ = random.Random(seed)
    days = [random_.choice(day_items(random_)) for _ in range(random_.randint(1, 3))]
    weekdays = [random_.choice(weekday_items(random_)) for _ in range(random_.randint(1, 3))]
    kind = random_.choice(("days", "weekdays", "either"))
    months = sorted(random_.sample(range(1, 13), random_.choice((1, 4, 12))))
    its = [
        *(holds for _, holds in days if kind != "weekdays"),
        *(holds for _, holds in weekdays if kind != "days"),
    ]
    any_day = random_.choice("*?")
    texts = (
        any_day if kind == "weekdays" else ",".join(text for text, _ in days),
        ",".join(map(str, months)),
        any_day if kind == "days" else ",".join(text for text, _ in weekdays),
    )
    return " ".join(texts), lambda day: day[1] in months and any(holds(day) for holds in its)


def test_signs_mean_the_days_that_a_count_finds_in_ten_years() -> None:
    use_pinned_zones()
    checked = 0
    for seed in range(RULES):
        text, holds = rule_of(seed)
        zone = ZONES[seed % len(ZONES)]
        here, hour = ZoneInfo(zone), 5 + seed % 18
        expected = [
            datetime(one.year, one.month, one.day, hour, 7, tzinfo=here).astimezone(UTC)
            for one, day in all_days()
            if holds(day)
        ]
        ends = (datetime(d.year, d.month, d.day, tzinfo=here) for d in (FIRST, LAST))
        if not expected:
            # In ten years, or never: such as the 31st of April.
            with suppress(InvalidRule):
                assert CronSchedule(f"7 {hour} {text}", zone).between(*ends) == [], text
            continue
        assert expected == CronSchedule(f"7 {hour} {text}", zone).between(*ends), text
        checked += 1

    assert checked > RULES * 0.9


@pytest.mark.parametrize(
    ("rule", "days"),
    [
        # Saturday the 1st goes forward: it never leaves its month.
        pytest.param("0 9 1W 5 *", ["2027-05-03", "2028-05-01"], id="first_is_a_saturday"),
        pytest.param(
            "0 9 */2 10 friL", ["2027-10-29", "2028-10-27"], id="both_if_one_begins_with_a_star"
        ),
    ],
)
def test_signs_at_the_ends_of_months(rule: str, days: list[str]) -> None:
    schedule = CronSchedule(rule, "UTC")

    found = schedule.between(datetime(2027, 1, 1, tzinfo=UTC), datetime(2029, 1, 1, tzinfo=UTC))

    assert [f"{one:%Y-%m-%d}" for one in found] == days


def test_a_last_day_comes_once_in_the_repeated_hour_and_after_a_gap() -> None:
    """As each fixed rule: 2027-03-28 and 2027-10-31 are last Sundays in Paris."""
    schedule = CronSchedule("30 2 * * sunL", "Europe/Paris")

    found = schedule.between(datetime(2027, 3, 1, tzinfo=UTC), datetime(2027, 11, 1, tzinfo=UTC))

    assert found[0] == datetime(2027, 3, 28, 1, tzinfo=UTC)
    assert found[-1] == datetime(2027, 10, 31, 0, 30, tzinfo=UTC)
    assert len(found) == 8
