"""What a rule says: what each field holds, what is refused, in words, with steps too large."""

import pickle
import re
from contextlib import suppress

import pytest

from cron import CronSchedule, InvalidRule, in_words, oversized_steps
from cron.fields import DAY, MINUTE, MONTH, WEEKDAY, Field, flags_of
from cron.rule import normalised, parse_rule
from tests.tables import table
from tests.work import lines_run

REFUSED_FIELDS = table(__file__, "an_error_names_the_field_and_what_to_write")
REFUSED_RULES = [
    *table(__file__, "an_error_of_a_whole_rule_names_the_rule"),
    pytest.param("\ud800 7 * * 1", "contains a character", id="lone_surrogate"),
    pytest.param("0 " * 101, "longer than 200", id="too_long"),
    pytest.param("*" * 10**6, "longer than 200", id="a_million_stars"),
    pytest.param(b"* * * * *", "not text but bytes", id="bytes"),
    pytest.param(["*"] * 5, "not text but list", id="a_list"),
]


@pytest.mark.parametrize(("rule", "field", "words"), REFUSED_FIELDS)
def test_an_error_names_the_field_and_what_to_write(rule: str, field: str, words: str) -> None:
    with pytest.raises(InvalidRule) as caught:
        CronSchedule(rule, "UTC")

    assert caught.value.field == field
    assert str(caught.value).startswith(field)
    assert words in str(caught.value)
    assert "write" in str(caught.value)


@pytest.mark.parametrize(
    ("rule", "words"),
    [row.values[::2] for row in REFUSED_FIELDS if re.fullmatch("write '[^']+'", row.values[2])],
    ids=str,
)
def test_what_to_write_instead_is_itself_a_field(rule: str, words: str) -> None:
    remedy = words.removeprefix("write ").strip("'")
    fields = [remedy if field != "*" else field for field in rule.split()]

    assert CronSchedule(" ".join(fields), "UTC").rule == " ".join(fields)


@pytest.mark.parametrize(
    ("field", "text", "expected"),
    [
        pytest.param(MINUTE, "*/20", {0, 20, 40}, id="a_step_over_all"),
        pytest.param(MINUTE, "*/90", {0}, id="a_step_beyond_the_range_is_its_first_value"),
        pytest.param(MINUTE, "07,0059", {7, 59}, id="leading_zeros"),
        pytest.param(MINUTE, "5-5/7", {5}, id="a_range_of_one_with_a_step"),
        pytest.param(MINUTE, "50-59/4,3", {50, 54, 58, 3}, id="a_step_over_a_range"),
        pytest.param(DAY, "*/10", {1, 11, 21, 31}, id="days_begin_at_one"),
        pytest.param(MONTH, "jan-mar/2,12", {1, 3, 12}, id="months_by_name"),
        pytest.param(WEEKDAY, "sun,fri-6", {0, 5, 6}, id="sunday_is_zero"),
    ],
)
def test_a_field_holds_the_values_as_in_debian(field: Field, text: str, expected: set[int]) -> None:
    flags = flags_of(field, text)

    assert expected == {value for value, flag in enumerate(flags) if flag}
    assert len(flags) == field.high + 1


def test_an_error_can_be_pickled() -> None:
    with pytest.raises(InvalidRule) as caught:
        CronSchedule("61 * * * *", "UTC")

    copy = pickle.loads(pickle.dumps(caught.value))

    assert (str(copy), copy.field) == (str(caught.value), "minute")


@pytest.mark.parametrize(("rule", "words"), REFUSED_RULES)
def test_an_error_of_a_whole_rule_names_the_rule(rule: str, words: str) -> None:
    with pytest.raises(InvalidRule) as caught:
        CronSchedule(rule, "UTC")

    assert caught.value.field == "rule"
    assert words in str(caught.value)
    assert "write" in str(caught.value)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("text", "expected"), table(__file__, "a_rule_is_kept_in_lower_case_with_its_nickname_expanded")
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


@pytest.mark.parametrize("text", [",".join(["1-59"] * 40), "9" * 192, "-" * 192, "mon" + ", " * 90])
def test_no_text_takes_long_to_read(text: str) -> None:
    def read() -> None:
        with suppress(InvalidRule):
            parse_rule(f"{text[:192]} * * * *")

    assert lines_run(read) < 10_000


def test_an_oversized_step_selects_one_value() -> None:
    for text in ("*/59 * * * *", "0 */23 1-31/7 * 0-6/3", "@daily", "5-5 * * * *", "1-2/1 * * * *"):
        assert oversized_steps(text) == (), text
    ((field, item, value),) = oversized_steps("1,20-40/21 * * * *")

    assert (field, item, value) == ("minute", "20-40/21", 20)
    assert flags_of(MINUTE, item) == flags_of(MINUTE, str(value))


@pytest.mark.parametrize(("rule", "expected"), table(__file__, "a_rule_reads_as_english"))
def test_a_rule_reads_as_english(rule: str, expected: str) -> None:
    assert expected == in_words(rule)
