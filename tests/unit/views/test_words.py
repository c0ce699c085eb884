"""Rules in words."""

from datetime import UTC, datetime, timedelta

import pytest

from models.action.plan import DueDateTrigger, IntervalTrigger, Plan, Trigger
from views.words import rules_in_words, zone_of

AT = datetime(2026, 12, 1, 14, tzinfo=UTC)


def plan_of(trigger: Trigger) -> Plan:
    return Plan(active=True, triggers=(trigger,), is_heavy=False, queue="quick")


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        pytest.param(1, "every minute", id="one_minute"),
        pytest.param(60, "every hour", id="one_hour"),
        pytest.param(90, "every 1 hour 30 minutes", id="two_units"),
        pytest.param(120, "every 2 hours", id="many"),
    ],
)
def test_an_interval_is_a_rhythm_in_words(minutes: int, words: str) -> None:
    every = timedelta(minutes=minutes)
    plan = plan_of(IntervalTrigger(every, AT, first_n=0, look_back=every))

    assert rules_in_words(plan, "UTC") == (f"{words}, counted from 2026-12-01T14:00:00Z",)


def test_a_due_date_is_shown_in_its_own_zone() -> None:
    plan = plan_of(DueDateTrigger(AT, timedelta(days=1), "America/New_York"))

    assert rules_in_words(plan, "UTC") == (
        "once, on Tue 2026-12-01 09:00 -05:00, America/New_York",
    )
    assert zone_of(plan, "UTC") == "America/New_York"
