from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from models.action.plan import Plan
from models.action.policy import PolicyModel
from tests.unit.models.action.minimal import planned

CRON = {"cron_rule": "0 7 * * 1"}
DUE_DATE = {"due_date": "2027-01-01T00:00"}
INTERVAL = {"every": "PT2H"}


def plan(policy: dict[str, Any] | None = None, when: object = CRON) -> Plan:
    return planned(when=when, policy=policy or {})


def look_backs(found: Plan) -> list[timedelta]:
    return [found.look_back_of(rule) for rule in found.rules]


@pytest.mark.parametrize(
    ("when", "look_back"),
    [
        (CRON, timedelta(minutes=5)),
        (DUE_DATE, timedelta(days=1)),
        (INTERVAL, timedelta(hours=2)),
        ({"every": "P3660D"}, timedelta(days=7)),
    ],
    ids=["cron", "due_date", "interval", "long_interval"],
)
def test_each_kind_of_when_has_its_look_back(when: object, look_back: timedelta) -> None:
    assert [look_back] == look_backs(plan(when=when))
    assert [timedelta(hours=1)] == look_backs(plan({"look_back": "PT1H"}, when))


@pytest.mark.parametrize(
    ("when", "time_limit"),
    [
        (CRON, timedelta(hours=4)),
        (INTERVAL, timedelta(hours=1)),
        ({"every": 75}, timedelta(seconds=37)),
        ({"every": "P100D"}, timedelta(days=7)),
    ],
    ids=["cron", "interval", "odd_interval", "long_interval"],
)
def test_the_time_limit_is_four_hours_or_half_an_interval(
    when: object, time_limit: timedelta
) -> None:
    assert time_limit == plan(when=when).time_limit
    assert timedelta(minutes=9) == plan({"time_limit": "PT9M"}, when).time_limit


def test_an_interval_of_a_second_has_a_time_limit_all_the_same() -> None:
    assert timedelta(seconds=1) == PolicyModel().time_limit_of(timedelta(seconds=1))


def test_the_defaults_are_those_of_the_plan() -> None:
    found = plan()

    assert Plan(active=True, rules=found.rules, is_heavy=False, queue="quick") == found


def test_every_key_reaches_the_plan() -> None:
    found = plan(
        {
            "catch_up": "all",
            "overlap": "queue",
            "max_waiting": 7,
            "retry": {"max_attempts": 5, "backoff": ["PT1S", "PT1H"]},
            "starts_at": "2027-01-01T00:00",
            "ends_at": "2027-07-01T00:00:00Z",
            "queue": "night",
        }
    )

    policy = found.policy
    assert (policy.catch_up, policy.overlap, policy.max_waiting) == ("all", "queue", 7)
    assert (policy.retry.max_attempts, found.queue) == (5, "night")
    assert policy.retry.backoff == (timedelta(seconds=1), timedelta(hours=1))
    assert policy.starts_at == datetime(2026, 12, 31, 23, tzinfo=UTC)
    assert policy.ends_at == datetime(2027, 7, 1, tzinfo=UTC)
    assert Plan.from_json(found.to_json()) == found
