import pytest

from cron import oversized_steps
from cron.fields import MINUTE, flags_of
from tests.tables import table


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
    table(__file__, "an_oversized_step_means_the_interval_of_its_field"),
)
def test_an_oversized_step_means_the_interval_of_its_field(text: str, every: str | None) -> None:
    (found,) = oversized_steps(text)

    assert every == found.every
