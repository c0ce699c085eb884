import pytest

from cron import oversized_steps
from cron.fields import MINUTE, flags_of


@pytest.mark.parametrize(
    "text", ["*/59 * * * *", "0 */23 1-31/7 * 0-6/3", "@daily", "5-5 * * * *", "1-2/1 * * * *"]
)
def test_a_step_within_its_range_is_not_oversized(text: str) -> None:
    assert oversized_steps(text) == ()


def test_an_oversized_step_selects_one_value() -> None:
    ((field, item, value),) = oversized_steps("1,20-40/21 * * * *")

    assert (field, item, value) == ("minute", "20-40/21", 20)
    assert flags_of(MINUTE, item) == flags_of(MINUTE, str(value))
