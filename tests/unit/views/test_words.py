"""Rules in words."""

from uuid import UUID

import pytest

from models.action.plan import Plan
from models.action.schedule import NO_UID
from tests.factories import make_plan, make_rule
from views.actions.rules import rules_in_words, zone_of

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

    assert rules_in_words(plan, NO_UID, "UTC") == (f"{words}, counted from 2026-12-01T14:00:00Z",)


def test_a_due_date_is_shown_in_its_own_zone() -> None:
    plan = plan_of(due_date=AT, timezone="America/New_York")

    assert rules_in_words(plan, NO_UID, "UTC") == (
        "once, on Tue 2026-12-01 09:00 -05:00, America/New_York",
    )
    assert zone_of(plan, "UTC") == "America/New_York"


def test_the_h_of_a_rule_is_shown_as_the_action_fixes_it() -> None:
    plan = plan_of(cron_rule="H H(0-7) * * *", timezone="Europe/Paris")

    assert rules_in_words(plan, UUID(int=1), "UTC") == (
        "at 03:45 (H H(0-7) * * * is 45 3 * * *), Europe/Paris",
    )


def test_the_h_of_an_action_that_is_not_stored_is_not_known() -> None:
    plan = plan_of(cron_rule="H 7 * * *", timezone="Europe/Paris")

    (words,) = rules_in_words(plan, NO_UID, "UTC")

    assert words.startswith("at a minute fixed for this action, past hour 7 (H 7 * * *), Europe/")
    assert words.endswith("; what is shown until it is stored is an example")
