import pytest

from models.action.plan import Plan
from services.actions.rules import rules_in_words, zone_of
from tests.factories import make_plan, make_rule

AT = "2026-12-01T14:00:00Z"


def plan_of(**keys: str) -> Plan:
    return make_plan(make_rule(**keys))


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
    plan = plan_of(every=f"PT{minutes}M", starting_at=AT)

    assert rules_in_words(plan, "UTC") == (f"{words}, counted from 2026-12-01T14:00:00Z",)


def test_a_due_date_is_shown_in_its_own_zone() -> None:
    plan = plan_of(due_date=AT, timezone="America/New_York")

    assert rules_in_words(plan, "UTC") == (
        "once, on Tue 2026-12-01 09:00 -05:00, America/New_York",
    )
    assert zone_of(plan, "UTC") == "America/New_York"
