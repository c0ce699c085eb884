from datetime import UTC, datetime, timedelta

import pytest

from models.store.operations.eta import eta_of

START = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param([], None, id="none"),
        pytest.param([60, 60], None, id="two_are_too_few"),
        pytest.param([60, 90, 70], 70, id="three"),
        pytest.param([60, 60, 60, 3_600], 60, id="one_outlier"),
        pytest.param([10] * 10 + [1_000] * 50, 10, id="the_newest_count"),
    ],
)
def test_the_median_of_the_newest_counts(seconds: list[int], expected: int | None) -> None:
    found = eta_of(START, [timedelta(seconds=one) for one in seconds])

    assert found == (None if expected is None else START + timedelta(seconds=expected))
