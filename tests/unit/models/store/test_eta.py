from datetime import UTC, datetime, timedelta

import pytest

from models.store.operations.eta import Left, left_of

START = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("ran_s", "left"),
    [
        pytest.param(0, Left(after(40), 40), id="begins"),
        pytest.param(39.9999, Left(after(40), 0.001), id="never_zero"),
        pytest.param(40, Left(), id="past_its_end"),
        pytest.param(79, Left(), id="nearly_too_long"),
        pytest.param(80, Left(is_longer_than_usual=True), id="twice_as_long"),
    ],
)
def test_what_is_left_is_said_until_it_takes_twice_as_long(ran_s: float, left: Left) -> None:
    assert left_of(START, after(40), after(ran_s)) == left


def test_without_an_estimate_nothing_is_said() -> None:
    assert left_of(START, None, START) == left_of(None, None, START) == Left()
