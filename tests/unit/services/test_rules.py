"""What is said of a rule: its words, its zone, and how croniter would run it at clock changes."""

from datetime import UTC, datetime

import pytest

from cron import CronSchedule, clock_changes
from services.actions.rules import (
    YEAR,
    croniter_comparison,
    daylight_notes,
    rules_in_words,
    zone_of,
)
from tests.factories import make_plan, make_rule
from tests.tables import table

NOW = datetime(2026, 11, 25, tzinfo=UTC)
AT = "2026-12-01T14:00:00Z"


@pytest.mark.parametrize(("rule", "zone", "expected"), table(__file__, "a_note_names_both_answers"))
def test_a_note_names_both_answers(rule: str, zone: str, expected: list[str]) -> None:
    plan = make_plan(make_rule(cron_rule=rule, timezone=zone))

    assert daylight_notes(plan, NOW, NOW + YEAR) == tuple(expected)


def test_an_occurrence_that_croniter_lacks_is_named_too() -> None:
    since = datetime(2024, 1, 1, tzinfo=UTC)
    schedule = CronSchedule("*/20 0-3 * * *", "Australia/Lord_Howe")
    (change,) = clock_changes(schedule, since, datetime(2024, 5, 1, tzinfo=UTC))

    # 01:40 +10:30, twenty minutes after the first 01:50 on the wall clock.
    assert croniter_comparison(schedule.rule, change).only_ours == (
        datetime(2024, 4, 6, 15, 10, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("minutes", "words"),
    [(1, "every minute"), (90, "every 1 hour 30 minutes"), (120, "every 2 hours")],
)
def test_an_interval_is_a_rhythm_in_words(minutes: int, words: str) -> None:
    plan = make_plan(make_rule(every=f"PT{minutes}M", starting_at=AT))

    assert rules_in_words(plan, "UTC") == (f"{words}, counted from {AT}",)


def test_a_due_date_is_shown_in_its_own_zone() -> None:
    plan = make_plan(make_rule(due_date=AT, timezone="America/New_York"))

    assert rules_in_words(plan, "UTC") == (
        "once, on Tue 2026-12-01 09:00 -05:00, America/New_York",
    )
    assert zone_of(plan, "UTC") == "America/New_York"
