"""Differences of instants between Celery's own engine and an action."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from models.action.plan import Plan
from moving.celery_fires import CrontabFires
from moving.celery_rules import Crontab
from moving.comparison import Difference, difference
from tests.factories import make_rule

NOW = datetime(2026, 11, 22, 15, tzinfo=UTC)
SPRING = datetime(2027, 3, 28, 1, tzinfo=UTC)
AUTUMN = datetime(2027, 10, 31, 1, tzinfo=UTC)


def compared(
    fields: str, zone: str = "Europe/Paris", rule: str = "", days: int = 730, **bounds: Any
) -> Difference:
    crontab = Crontab(tuple(fields.split()), zone)
    made = make_rule(cron_rule=rule or crontab.rule, timezone=zone)
    plan = Plan(False, (made,), False, "default").with_policy(**bounds)
    return difference(plan, CrontabFires(crontab), NOW, NOW + timedelta(days=days))


@pytest.mark.parametrize(
    ("fields", "zone", "total"),
    [
        pytest.param("5 0 * * *", "Europe/Paris", 730, id="at_night_apart_from_the_change"),
        pytest.param("30 7 * * mon-fri", "Europe/Paris", 522, id="work_days"),
        pytest.param("30 2 * * *", "Asia/Tokyo", 730, id="a_zone_without_changes"),
        pytest.param("*/5 * * * *", "UTC", 210_240, id="often"),
        pytest.param("0 9 1-7 * mon", "America/New_York", 24, id="both_days"),
    ],
)
def test_the_same_instants(fields: str, zone: str, total: int) -> None:
    assert Difference(0, total) == compared(fields, zone)


def test_a_skipped_time_runs_at_the_end_of_the_gap_here_and_an_hour_later_in_celery() -> None:
    found = compared("30 2 * * *")

    assert Difference(4, 730, SPRING, True) == found


def test_beat_loses_the_repeated_hour_of_an_hourly_task() -> None:
    found = compared("0 * * * *")

    assert (found.first_at, found.is_here) == (AUTUMN, True)


def test_another_rule_is_noticed() -> None:
    found = compared("0 9 1-7 * mon", rule="0 9 1-7 * mon", days=31)

    # Either field of days is enough for cron: six days of December, and three Mondays more.
    assert Difference(10, 11, datetime(2026, 11, 23, 8, tzinfo=UTC), True) == found


def test_instants_outside_the_bounds_of_both_are_not_compared() -> None:
    found = compared("30 7 * * *", starts_at=SPRING, ends_at=AUTUMN)

    assert Difference(0, (AUTUMN - SPRING).days) == found
