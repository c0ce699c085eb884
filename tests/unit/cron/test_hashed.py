"""`H`, against Jenkins's meaning of it: one value, one of a range, or each nth from one."""

from collections import Counter
from uuid import UUID

import pytest

from cron import CronSchedule, InvalidRule, check_rule, fixed_rule, has_hash, in_words
from cron.fields import DAY, FIELDS, HOUR, MINUTE, MONTH, WEEKDAY, Field, flags_of
from cron.rule import normalised, parse_rule

SEEDS = [UUID(int=n).bytes for n in range(3_000)]


def values_of(rule: str, seed: bytes) -> list[set[int]]:
    """Return the values of each field of a rule as a seed fixes it."""
    texts = fixed_rule(rule, seed).split(" ")
    return [
        {value for value, flag in enumerate(flags_of(field, text)) if flag}
        for field, text in zip(FIELDS, texts, strict=True)
    ]


@pytest.mark.parametrize(
    ("field", "item", "expected"),
    [
        pytest.param(MINUTE, "H", range(60), id="minute"),
        pytest.param(HOUR, "h", range(24), id="hour"),
        pytest.param(DAY, "H", range(1, 29), id="a_day_that_each_month_has"),
        pytest.param(MONTH, "H", range(1, 13), id="month"),
        pytest.param(WEEKDAY, "H", range(7), id="weekday"),
        pytest.param(MINUTE, "H(0-29)", range(30), id="a_range"),
        pytest.param(DAY, "H(1-31)", range(1, 32), id="a_range_of_days"),
        pytest.param(WEEKDAY, "H(mon-fri)", range(1, 6), id="weekdays_by_name"),
        pytest.param(MONTH, "H(jun-aug)", range(6, 9), id="months_by_name"),
        pytest.param(HOUR, "H(3-3)", range(3, 4), id="a_range_of_one"),
    ],
)
def test_each_value_of_its_range_comes_about_as_often(
    field: Field, item: str, expected: range
) -> None:
    place = FIELDS.index(field)
    rule = " ".join(item if n == place else "*" for n in range(5))

    found = Counter(value for seed in SEEDS for value in values_of(rule, seed)[place])

    assert set(expected) == set(found)
    assert sum(found.values()) == len(SEEDS)
    assert max(found.values()) < 1.5 * len(SEEDS) / len(expected) + 10


@pytest.mark.parametrize(
    ("item", "step", "low", "end"),
    [("H/15", 15, 0, 60), ("H(10-40)/7", 7, 10, 41), ("H/60", 60, 0, 60)],
)
def test_a_step_begins_at_one_of_its_first_values(item: str, step: int, low: int, end: int) -> None:
    found = {tuple(sorted(values_of(f"{item} * * * *", seed)[0])) for seed in SEEDS}

    assert {tuple(range(low + n, end, step)) for n in range(step)} == found


def test_minute_and_hour_are_independent() -> None:
    pairs = {tuple(fixed_rule("H H * * *", seed).split(" ")[:2]) for seed in SEEDS}

    # Of 1,440 pairs; if the hour followed from the minute, there were at most 120.
    assert len(pairs) > 1_000


def test_a_seed_always_fixes_the_same_rule() -> None:
    assert fixed_rule("H H(0-7) * * *", SEEDS[1]) == "45 3 * * *"
    assert fixed_rule("h\th(0-7) * * *", SEEDS[1]) == "45 3 * * *"


def test_a_list_has_it_beside_plain_values_and_signs() -> None:
    day = fixed_rule("0 0 H,L * *", SEEDS[2]).split(" ")[2]

    assert day.endswith(",L")
    assert 1 <= int(day.removesuffix(",L")) <= 28


@pytest.mark.parametrize(
    ("rule", "is_wildcard"),
    [("H 2 * * *", False), ("H * * * *", True), ("H/15 2 * * *", False), ("*/5 H * * *", True)],
)
def test_it_is_fixed_or_a_wildcard_as_what_it_becomes(rule: str, is_wildcard: bool) -> None:
    found = {parse_rule(fixed_rule(rule, seed)).is_wildcard for seed in SEEDS[:100]}

    assert {is_wildcard} == found


def test_a_rule_without_it_stays_as_it_is() -> None:
    assert fixed_rule("0 7 * MAR thu", SEEDS[0]) == "0 7 * MAR thu"
    assert not has_hash("0 7 * mar thu")


def test_it_is_kept_as_a_capital() -> None:
    assert normalised("h h(0-7) * * h(mon-fri)") == "H H(0-7) * * H(mon-fri)"


REFUSED = [
    ("H5 * * * *", "minute", "write 'H', 'H(3-7)' or 'H/2'"),
    ("5H * * * *", "minute", "write 'H', 'H(3-7)' or 'H/2'"),
    ("H-5 * * * *", "minute", "write 'H', 'H(3-7)' or 'H/2'"),
    ("H(0-29 * * * *", "minute", "write 'H', 'H(3-7)' or 'H/2'"),
    ("* * * * H#2", "day of week", "write 'H', 'H(3-7)' or 'H/2'"),
    ("H(30-20) * * * *", "minute", "write 'H(20-30)'"),
    ("H(0-60) * * * *", "minute", "'60' is above 59"),
    ("* H(mon-fri) * * *", "hour", "is a day of week"),
    ("H/1 * * * *", "minute", "write '0-59'"),
    ("H/61 * * * *", "minute", "write 'H' for one value"),
    ("* H/0 * * *", "hour", "not from 2 to 24; write 'H'"),
    ("H(0-9)/20 * * * *", "minute", "not from 2 to 10; write 'H(0-9)'"),
    ("0 0 H(30-31) 2 *", "day of month", "'30' never occurs in month '2'"),
    ("0 0 H(29-31) 2 *", "day of month", "may become '0 0 31 2 *' by its H"),
    ("0 0 31 H *", "day of month", "may become '0 0 31 2 *' by its H"),
]


@pytest.mark.parametrize(("rule", "field", "words"), REFUSED, ids=[row[0] for row in REFUSED])
def test_a_wrong_one_is_told_what_to_write(rule: str, field: str, words: str) -> None:
    with pytest.raises(InvalidRule) as caught:
        check_rule(rule)

    assert caught.value.field == field
    assert words in str(caught.value)


def test_no_schedule_is_made_of_a_rule_that_no_action_fixed() -> None:
    with pytest.raises(InvalidRule, match="an action fixes"):
        CronSchedule("H 7 * * *", "UTC")


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("H H * * *", "at a minute and an hour fixed for this action"),
        ("H/15 * * * *", "at every 15th minute fixed for this action"),
        ("H,30 3 * * *", "at a minute and minute 30 fixed for this action, past hour 3"),
        ("30 6 H * *", "at a day of month fixed for this action, at 06:30"),
        (
            "H(0-9)/5 H(0-7) * * *",
            "at every 5th minute from 0 to 9 and an hour from 0 to 7 fixed for this action",
        ),
        (
            "0 0 1 H(6-8) *",
            "at a month from June to August fixed for this action, at 00:00, on day 1 of the month",
        ),
        (
            "0 0 * * H(sat-7)",
            "at a day of week from Saturday to Sunday fixed for this action, at 00:00",
        ),
    ],
)
def test_it_reads_as_english_before_an_action_fixes_it(rule: str, expected: str) -> None:
    assert expected == in_words(rule)


def test_every_rule_that_is_accepted_fires_whatever_it_becomes() -> None:
    for rule in ["0 0 H(1-31) * *", "0 0 H(29-31) 1 *", "0 0 H H *", "0 0 29 H *", "H H H H H"]:
        check_rule(rule)
        for seed in SEEDS[:300]:
            parse_rule(fixed_rule(rule, seed))
