"""Rules in words."""

from datetime import UTC, datetime, timedelta

from models.action.plan import DueDateTrigger, Plan
from views.words import rules_in_words, zone_of


def test_a_due_date_is_shown_in_its_own_zone() -> None:
    due_at = datetime(2026, 12, 1, 14, tzinfo=UTC)
    trigger = DueDateTrigger(due_at, timedelta(days=1), "America/New_York")
    plan = Plan(active=True, triggers=(trigger,), is_heavy=False, queue="quick")

    assert rules_in_words(plan, "UTC") == (
        "once, on Tue 2026-12-01 09:00 -05:00, America/New_York",
    )
    assert zone_of(plan, "UTC") == "America/New_York"
