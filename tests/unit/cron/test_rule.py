from contextlib import suppress

import pytest

from cron import CronSchedule, InvalidRule
from cron.rule import normalised, parse_rule
from tests.tables import table
from tests.unit.cron.work import lines_run

REFUSED = [
    *table(__file__, "an_error_of_a_whole_rule_names_the_rule"),
    pytest.param("\ud800 7 * * 1", "contains a character", id="lone_surrogate"),
    pytest.param("0 " * 101, "longer than 200", id="too_long"),
    pytest.param("*" * 10**6, "longer than 200", id="a_million_stars"),
    pytest.param(b"* * * * *", "not text but bytes", id="bytes"),
    pytest.param(["*"] * 5, "not text but list", id="a_list"),
]


@pytest.mark.parametrize(("rule", "words"), REFUSED)
def test_an_error_of_a_whole_rule_names_the_rule(rule: str, words: str) -> None:
    with pytest.raises(InvalidRule) as caught:
        CronSchedule(rule, "UTC")

    assert caught.value.field == "rule"
    assert words in str(caught.value)
    assert "write" in str(caught.value)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("text", "expected"),
    table(__file__, "a_rule_is_kept_in_lower_case_with_its_nickname_expanded"),
)
def test_a_rule_is_kept_in_lower_case_with_its_nickname_expanded(text: str, expected: str) -> None:
    assert expected == normalised(text)


@pytest.mark.parametrize(
    ("text", "is_wildcard"),
    table(__file__, "a_rule_is_a_wildcard_if_its_minute_or_hour_begins_with_a_star"),
)
def test_a_rule_is_a_wildcard_if_its_minute_or_hour_begins_with_a_star(
    text: str, is_wildcard: bool
) -> None:
    assert parse_rule(text).is_wildcard is is_wildcard


@pytest.mark.parametrize(
    ("text", "days"),
    [
        *table(__file__, "days_of_month_and_of_week_combine_as_in_debian"),
        pytest.param("0 0 13 * 0-7", [*range(1, 32)], id="a_full_weekday_list_is_enough"),
        pytest.param("0 0 13,* * 5", [*range(1, 32)], id="a_star_not_first_in_a_list"),
    ],
)
def test_days_of_month_and_of_week_combine_as_in_debian(text: str, days: list[int]) -> None:
    rule = parse_rule(text)
    start = (57 * 365 + 14 + 273) * 1440  # 2026-10-01, counted from 1969-01-01

    minutes = {day: start + (day - 1) * 1440 for day in range(1, 32)}
    found = [day for day, minute in minutes.items() if rule.at_or_after(minute) == minute]

    assert days == found


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(",".join(["1-59"] * 40), id="as_long_as_a_rule_may_be"),
        pytest.param("9" * 192, id="one_huge_number"),
        pytest.param("-" * 192, id="dashes"),
        pytest.param("mon" + ", " * 90, id="weekdays_in_words"),
    ],
)
def test_no_text_takes_long_to_read(text: str) -> None:
    def read(text: str) -> None:
        with suppress(InvalidRule):
            parse_rule(f"{text[:192]} * * * *")

    assert lines_run(lambda: read(text)) < 10_000
