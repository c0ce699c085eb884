"""How long the broker of an application is left alone after it failed."""

import pytest

from broker.external_publish import left_alone_s


@pytest.mark.parametrize(
    ("spent_s", "left_s"),
    [
        pytest.param(0.01, 5, id="it_refuses_at_once"),
        pytest.param(4, 40, id="it_is_silent"),
        pytest.param(10, 60, id="no_longer_than_a_minute"),
    ],
)
def test_the_longer_a_broker_takes_to_fail_the_longer_it_is_left_alone(
    spent_s: float, left_s: float
) -> None:
    assert left_alone_s(spent_s) == left_s
