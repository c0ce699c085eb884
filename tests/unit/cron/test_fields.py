import pickle
import re

import pytest

from cron import CronSchedule, InvalidRule
from cron.fields import DAY, MINUTE, MONTH, WEEKDAY, Field, flags_of
from tests.tables import table

REFUSED = table(__file__, "an_error_names_the_field_and_what_to_write")


@pytest.mark.parametrize(("rule", "field", "words"), REFUSED)
def test_an_error_names_the_field_and_what_to_write(rule: str, field: str, words: str) -> None:
    with pytest.raises(InvalidRule) as caught:
        CronSchedule(rule, "UTC")

    assert caught.value.field == field
    assert str(caught.value).startswith(field)
    assert words in str(caught.value)
    assert "write" in str(caught.value)


@pytest.mark.parametrize(
    ("rule", "words"),
    [row.values[::2] for row in REFUSED if re.fullmatch("write '[^']+'", row.values[2])],
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
def test_a_field_holds_the_values_that_debian_reads(
    field: Field, text: str, expected: set[int]
) -> None:
    flags = flags_of(field, text)

    assert expected == {value for value, flag in enumerate(flags) if flag}
    assert len(flags) == field.high + 1


def test_an_error_can_be_pickled() -> None:
    with pytest.raises(InvalidRule) as caught:
        CronSchedule("61 * * * *", "UTC")

    copy = pickle.loads(pickle.dumps(caught.value))

    assert (str(copy), copy.field) == (str(caught.value), "minute")
