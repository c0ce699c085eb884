from datetime import UTC, datetime, timedelta
from itertools import product
from random import Random
from typing import Any

import pytest

from cron import CronSchedule
from interop.celery_rules import Crontab, engine_of
from interop.entries import CannotMove
from tests.tables import table


def rule(minute: str, hour: str, day: str = "*", month: str = "*", weekday: str = "*") -> str:
    return Crontab((minute, hour, day, month, weekday), "UTC").rule


@pytest.mark.parametrize(("fields", "expected"), table(__file__, "a_crontab_is_written_as_a_rule"))
def test_a_crontab_is_written_as_a_rule(fields: list[str], expected: str) -> None:
    assert expected == rule(*fields)


def test_days_that_must_both_match_are_a_recurrence_rule() -> None:
    when = Crontab(("0,30", "9", "8-15", "3,4", "1"), "Europe/Paris").when

    assert when == {
        "rrule": "FREQ=DAILY;BYMONTH=3,4;BYMONTHDAY=8,9,10,11,12,13,14,15;BYDAY=MO",
        "at": ["09:00", "09:30"],
        "timezone": "Europe/Paris",
    }


def test_days_that_must_both_match_at_too_many_times_are_refused() -> None:
    with pytest.raises(CannotMove, match="8-15 and day_of_week 1 must both match") as refused:
        _ = Crontab(("*/5", "9,10,11", "8-15", "*", "1"), "UTC").when

    assert "a recurrence rule with at most 24 times of the day" in refused.value.instead


@pytest.mark.parametrize("fields", [("61", "0"), ("", "0"), ("0", "0", "31", "2")])
def test_what_celery_refuses_is_refused(fields: tuple[str, ...]) -> None:
    with pytest.raises(CannotMove, match="Celery refuses its crontab"):
        rule(*fields)


@pytest.mark.parametrize("written", [True, None, 1.5, ["1"], {"a": 1}, "1" * 2_000])
def test_a_field_is_a_short_text_or_a_number(written: object) -> None:
    with pytest.raises(CannotMove, match="minute"):
        Crontab.read({"minute": written}, "UTC")


def _written(random: Random, low: int, high: int) -> str:
    first, last = random.randint(low, high), random.randint(low, high)
    forms = [
        "*", f"*/{random.randint(1, 9)}", str(first), f"{first}-{last}",
        ",".join(str(random.randint(low, high)) for _ in range(3)),
    ]  # fmt: skip
    return random.choice(forms)


def matching(engine: Any, since: datetime, days: int) -> list[datetime]:
    """Return the minutes of these days that are in all five sets of Celery's crontab."""
    midnights = [since + timedelta(days=number) for number in range(days)]
    return [
        day + timedelta(hours=hour, minutes=minute)
        for day in midnights
        if day.month in engine.month_of_year
        and day.day in engine.day_of_month
        and day.isoweekday() % 7 in engine.day_of_week
        for hour, minute in product(sorted(engine.hour), sorted(engine.minute))
    ]


def test_every_rule_has_the_days_and_times_of_its_crontab() -> None:
    random = Random(15)
    since = datetime(2027, 1, 1, tzinfo=UTC)
    until = since + timedelta(days=400)
    second = timedelta(seconds=1)
    refused = 0
    for _ in range(300):
        fields = (
            str(random.randint(0, 59)), _written(random, 0, 23), _written(random, 1, 31),
            _written(random, 1, 12), _written(random, 0, 6),
        )  # fmt: skip
        try:
            found = CronSchedule(rule(*fields), "UTC")
        except CannotMove:
            refused += 1
            continue

        expected = matching(engine_of(fields), since, 400)
        assert expected == found.between(since - second, until - second), fields
    assert 0 < refused < 100
