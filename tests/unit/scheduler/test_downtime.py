"""Which occurrences lie in an outage."""

from datetime import UTC, datetime

import pytest

from models.store.actions.downtime import Span
from tests.ticks import HOUR

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        pytest.param(0, 1, False, id="the_last_tick_before_it_decided_its_begin"),
        pytest.param(0.1, 2, True, id="its_end_is_in_it"),
        pytest.param(1, 2.1, False, id="beyond_its_end"),
    ],
)
def test_an_outage_has_an_open_begin(first: float, last: float, expected: bool) -> None:
    outage = Span(NOON, NOON + 2 * HOUR, NOON)

    assert outage.covers(NOON + first * HOUR, NOON + last * HOUR) is expected
