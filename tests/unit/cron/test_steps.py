import pytest

from cron import oversized_steps
from cron.fields import MINUTE, flags_of


@pytest.mark.parametrize(
    "text", ["*/59 * * * *", "0 */23 1-31/7 * 0-6/3", "@daily", "5-5 * * * *", "1-2/1 * * * *"]
)
def test_a_step_within_its_range_is_not_oversized(text: str) -> None:
    assert oversized_steps(text) == ()


def test_an_oversized_step_selects_one_value() -> None:
    ((field, item, value, every),) = oversized_steps("1,20-40/21 * * * *")

    assert (field, item, value, every) == ("minute", "20-40/21", 20, None)
    assert flags_of(MINUTE, item) == flags_of(MINUTE, str(value))


@pytest.mark.parametrize(
    ("text", "every"),
    [
        pytest.param("*/90 * * * *", "PT90M", id="minutes"),
        pytest.param("*/120 * * * *", "PT2H", id="minutes_that_are_hours"),
        pytest.param("*/1440 * * * *", "P1D", id="minutes_that_are_a_day"),
        pytest.param("0 */24 * * *", "P1D", id="hours_that_are_a_day"),
        pytest.param("0 */36 * * *", "PT36H", id="hours"),
        pytest.param("0 9 */45 * *", "P45D", id="days"),
        pytest.param("0 0 1 */18 *", None, id="months_have_no_length"),
        pytest.param("0 0 * * */14", None, id="weekdays_are_no_unit"),
        pytest.param("*/90 9 * * *", None, id="one_hour_only"),
        pytest.param("*/90 * * * mon", None, id="one_weekday_only"),
        pytest.param("5,10 */36 * * *", None, id="two_minutes"),
        pytest.param("*/90,5 * * * *", None, id="a_list"),
        pytest.param("0 8-18/24 * * *", None, id="a_range"),
        pytest.param("*/2147483647 * * * *", None, id="longer_than_an_interval_may_be"),
    ],
)
def test_an_oversized_step_means_the_interval_of_its_field(text: str, every: str | None) -> None:
    (found,) = oversized_steps(text)

    assert every == found.every
