import pickle
import re

import pytest

from cron import CronSchedule, InvalidRule
from cron.fields import DAY, FIELDS, MINUTE, MONTH, WEEKDAY, Field, flags_of

REFUSED = [
    # rule, field, a part of its error
    ("60 * * * *", "minute", "above 59"),
    ("* 24 * * *", "hour", "above 23"),
    ("* * 0 * *", "day of month", "below 1"),
    ("* * 32 * *", "day of month", "above 31"),
    ("* * * 0 *", "month", "below 1"),
    ("* * * 13 *", "month", "above 12"),
    ("* * * * 8", "day of week", "0 and 7 are Sunday"),
    ("-1 * * * *", "minute", "a number from 0 to 59"),
    ("+1 * * * *", "minute", "a number from 0 to 59"),
    ("1.5 * * * *", "minute", "not understood"),
    ("0x5 * * * *", "minute", "not understood"),
    ("1_0 * * * *", "minute", "not understood"),
    ("9999999999999999999999 * * * *", "minute", "above 59"),
    ("1-99999999999 * * * *", "minute", "above 59"),
    ("*/99999999999 * * * *", "minute", "too large"),
    ("*/2147483648 * * * *", "minute", "too large"),
    ("*/0 * * * *", "minute", "step 0"),
    ("1-5/00 * * * *", "minute", "'*/5'"),
    ("*/ * * * *", "minute", "not understood"),
    ("*/x * * * *", "minute", "not understood"),
    ("*/-5 * * * *", "minute", "not understood"),
    ("*5 * * * *", "minute", "not understood"),
    ("*-5 * * * *", "minute", "not understood"),
    ("** * * * *", "minute", "not understood"),
    ("5- * * * *", "minute", "not understood"),
    ("1-2-3 * * * *", "minute", "not understood"),
    (", * * * *", "minute", "empty item"),
    ("1,,2 * * * *", "minute", "empty item"),
    ("* 1, * * *", "hour", "empty item"),
    ("5/15 * * * *", "minute", "write '5-59/15'"),
    ("* 8/2 * * *", "hour", "write '8-23/2'"),
    ("* * 1/7 * *", "day of month", "write '1-31/7'"),
    ("* * * jan/3 *", "month", "write 'jan-12/3'"),
    ("* * * * mon/2", "day of week", "write 'mon-6/2'"),
    ("50-10 * * * *", "minute", "write '50-59,0-10'"),
    ("* 22-2 * * *", "hour", "write '22-23,0-2'"),
    ("* 23-0 * * *", "hour", "write '23,0'"),
    ("* 22-3/2 * * *", "hour", "write '22,0,2'"),
    ("* * 30-2 * *", "day of month", "write '30-31,1-2'"),
    ("* * * nov-feb *", "month", "write '11-12,1-2'"),
    ("* * * 11-2 *", "month", "write '11-12,1-2'"),
    ("* * * * sat-sun", "day of week", "write '6,0'"),
    ("* * * * fri-sun", "day of week", "write '5-6,0'"),
    ("* * * * 5-0", "day of week", "write '5-6,0'"),
    ("* * * * sat-mon", "day of week", "write '6,0-1'"),
    ("* * * * 6-1", "day of week", "write '6,0-1'"),
    ("* * * * 7-2", "day of week", "write '0-2'"),
    ("* * * * fri-tue/2", "day of week", "write '5,0,2'"),
    ("* * * foo *", "month", "jan to dec"),
    ("* * * january *", "month", "write 'jan'"),
    ("* * * * monday", "day of week", "write 'mon'"),
    ("mon * * * *", "minute", "is a day of week; write"),
    ("* * * mon *", "month", "is a day of week; write"),
    ("* * jan * *", "day of month", "is a month; write"),
    ("0/15 * * * *", "minute", "write '*/15'"),
    ("? * * * *", "minute", "'*' in place of '?'"),
    ("* ? * * *", "hour", "'*' in place of"),
    ("* * ?/2 * *", "day of month", "'*' in place of"),
    ("L * * * *", "minute", "write 'L', 'L-3', '15W' or 'LW' as day of month"),
    ("* * * * L", "day of week", "'friL' or 'mon#2' as day of week"),
    ("* * L/2 * *", "day of month", "'L', 'L-3'"),
    ("* * L-31 * *", "day of month", "'L-30' or less"),
    ("* * L-30 2 *", "day of month", "never occurs in month '2'"),
    ("* * 31W 2,4 *", "day of month", "never occurs in month '2,4'"),
    ("* * W * *", "day of month", "'15W' or 'LW'"),
    ("* * 0W * *", "day of month", "'0' is below 1"),
    ("* * 32W * *", "day of month", "'32' is above 31"),
    ("* * 15-20W * *", "day of month", "'15W' or 'LW'"),
    ("* * * * #2", "day of week", "'mon#2' as day of week"),
    ("* * * * fri#6", "day of week", "'fri#1' to 'fri#5'"),
    ("* * * * mon-fri#2", "day of week", "each by itself"),
    ("* * * * 8#2", "day of week", "'8' is above 7"),
    ("* * * * fro#2", "day of week", "sun to sat"),
    ("* * */31 * fri#2", "day of month", "never falls on 'fri#2'"),
    ("R * * * *", "minute", "write a number, and"),
    ("H 7 * * *", "minute", "jitter"),
    ("H5 7 * * *", "minute", "jitter"),
    ("0 H(0-7) * * *", "hour", "jitter"),
    ("H/15 * * * *", "minute", "jitter"),
    ("0 7 * * H(mon-fri)", "day of week", "jitter"),
    ("0~30 * * * *", "minute", "write a number, and"),
    ("0 0 31 2 *", "day of month", "never occurs"),
    ("0 0 30,31 feb *", "day of month", "never occurs"),
    ("0 0 31 2,4,6,9,11 *", "day of month", "never occurs"),
    ("0 0 31 4 */2", "day of month", "never occurs"),
]


@pytest.mark.parametrize(("rule", "field", "words"), REFUSED, ids=[row[0] for row in REFUSED])
def test_an_error_names_the_field_and_what_to_write(rule: str, field: str, words: str) -> None:
    with pytest.raises(InvalidRule) as caught:
        CronSchedule(rule, "UTC")

    assert caught.value.field == field
    assert str(caught.value).startswith(field)
    assert words in str(caught.value)
    assert "write" in str(caught.value)


@pytest.mark.parametrize(
    ("rule", "words"),
    [row[::2] for row in REFUSED if re.fullmatch("write '[^']+'", row[2])],
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
        pytest.param(MINUTE, "*/2147483647", {0}, id="the_largest_step"),
        pytest.param(MINUTE, "07,0059", {7, 59}, id="leading_zeros"),
        pytest.param(MINUTE, "5-5", {5}, id="a_range_of_one"),
        pytest.param(MINUTE, "5-5/7", {5}, id="a_range_of_one_with_a_step"),
        pytest.param(MINUTE, "50-59/4,3", {50, 54, 58, 3}, id="a_step_over_a_range"),
        pytest.param(DAY, "*/10", {1, 11, 21, 31}, id="days_begin_at_one"),
        pytest.param(MONTH, "jan-mar/2,12", {1, 3, 12}, id="months_by_name"),
        pytest.param(WEEKDAY, "6-7", {6, 7}, id="sunday_is_seven"),
        pytest.param(WEEKDAY, "sun,fri-6", {0, 5, 6}, id="sunday_is_zero"),
    ],
)
def test_a_field_holds_the_values_that_debian_reads(
    field: Field, text: str, expected: set[int]
) -> None:
    flags = flags_of(field, text)

    assert expected == {value for value, flag in enumerate(flags) if flag}
    assert len(flags) == field.high + 1


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_a_star_is_the_whole_range(field: Field) -> None:
    assert flags_of(field, "*") == flags_of(field, f"{field.low}-{field.high}")


def test_an_error_can_be_pickled() -> None:
    with pytest.raises(InvalidRule) as caught:
        CronSchedule("61 * * * *", "UTC")

    copy = pickle.loads(pickle.dumps(caught.value))

    assert (str(copy), copy.field) == (str(caught.value), "minute")
