import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from models.action.document import stored_document
from models.action.rule import RuleModel
from models.action.schedule import NO_UID
from tests.tables import table
from tests.unit.models.action.minimal import NOW, action, parse, planned

PARIS = {"timezone": "Europe/Paris"}


def stored(**when: Any) -> dict[str, Any]:
    made = parse(action(when=when), default_zone="America/New_York", created_at=NOW)
    return dict(stored_document(made)["when"])


def rule_of(**when: Any) -> RuleModel:
    (rule,) = planned(when=when).rules
    return rule


def first(count: int, **when: Any) -> list[str]:
    """Return the first occurrences of a rule after now, on the clock of Paris."""
    schedule, at = rule_of(**when).schedule(NO_UID), NOW
    found: list[str] = []
    while len(found) < count and (after := schedule.next(at)) is not None:
        at = after
        found.append(f"{at:%Y-%m-%dT%H:%MZ}")
    return found


def test_the_stored_document_holds_zone_and_a_given_first_day() -> None:
    assert stored(rrule="FREQ=DAILY", at="09:00") == {
        "rrule": "FREQ=DAILY",
        "at": "09:00",
        "timezone": "America/New_York",
    }
    again = stored(rrule="freq=daily", at=["17:00", "09:00"], starting_at="2026-11-30", **PARIS)
    assert again["starting_at"] == "2026-11-29T23:00:00Z"
    assert again == stored(**again)


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        pytest.param({"at": ["17:00", "09:00"]}, ["08:00", "16:00", "08:00"], id="several"),
        pytest.param({"rrule": "FREQ=DAILY;BYHOUR=9;BYMINUTE=0,30"}, ["08:00", "08:30"], id="rule"),
        pytest.param(
            {"starting_at": "2026-12-01T11:15:00", "at": "11:00"},
            ["10:00", "10:00"],
            id="beside_a_later_start",
        ),
    ],
)
def test_the_times_of_the_day(when: Any, expected: list[str]) -> None:
    rule = {"rrule": "FREQ=DAILY", "starting_at": "2026-12-01", **PARIS, **when}

    assert expected == [one[11:16] for one in first(len(expected), **rule)]


@pytest.mark.parametrize(("end", "expected"), table(__file__, "count_and_until_end_a_rule"))
def test_count_and_until_end_a_rule(end: str, expected: list[str]) -> None:
    rule = {"at": ["09:00", "17:00"], "starting_at": "2026-12-01T10:00:00", **PARIS}

    assert expected == first(9, rrule=f"FREQ=DAILY;{end}", **rule)


def test_an_end_beyond_the_calendar_is_none() -> None:
    for end in ("UNTIL=99991231", "UNTIL=99991231T235959Z", "COUNT=10000"):
        assert len(first(5, rrule=f"FREQ=YEARLY;{end}", at="09:00")) == 5


def test_the_words_show_the_first_day_where_it_matters() -> None:
    rrule = "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO"

    assert rule_of(rrule=rrule, at="09:00", starting_at="2026-11-30").words("UTC") == (
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO at 09:00, from Mon 2026-11-30, Europe/Paris"
    )


@pytest.mark.parametrize(
    ("rrule", "since", "lacking", "followed"),
    table(__file__, "a_rule_without_a_day_in_some_periods_is_warned_about"),
)
def test_a_rule_without_a_day_in_some_periods_is_warned_about(
    rrule: str, since: str, lacking: str, followed: str | None
) -> None:
    """The rule that follows the advice is not warned about, and runs once a period."""
    (warning,) = rule_of(rrule=rrule, at="09:00", starting_at=since).warnings("UTC")

    advice = followed and "; write BYMONTHDAY=-1, the last day, to have one in each"
    assert warning.endswith(f": has no date in {lacking}{advice or ''}")
    if followed:
        again = rule_of(rrule=followed, at="09:00", starting_at=since)
        assert [*again.warnings("UTC")] == []
        assert again.schedule(NO_UID).count(NOW, NOW + timedelta(days=4 * 366)) <= 49


@pytest.mark.parametrize(
    "rrule", table(__file__, "a_rule_with_a_day_in_each_period_or_of_two_kinds_is_not_warned_about")
)
def test_a_rule_with_a_day_in_each_period_or_of_two_kinds_is_not_warned_about(rrule: str) -> None:
    rule = rule_of(rrule=rrule, at="09:00", starting_at="2027-01-31")

    assert [*rule.warnings("UTC")] == []


def test_the_advice_of_a_drifting_interval_is_accepted_and_begins_with_it() -> None:
    rule = rule_of(every="P3D", starting_at="2026-12-01T11:05:00", **PARIS)
    (warning,) = rule.warnings("UTC")
    advice = json.loads(warning[warning.index("{") : warning.index("}") + 1])

    assert first(1, **advice) == ["2026-12-01T10:05Z"]
    span = (datetime(2026, 12, 1, tzinfo=UTC), datetime(2027, 2, 19, tzinfo=UTC))
    counts = {one.schedule(NO_UID).count(*span) for one in (rule, rule_of(**advice))}
    assert len(counts) == 1
