from datetime import UTC, datetime, timedelta

import pytest

from models.store.operations.eta import Eta, Left, eta_of, left_of

START = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)


def after(seconds: float) -> datetime:
    """Return an instant after the start."""
    return START + timedelta(seconds=seconds)


ETA = Eta(after(20), after(40), after(60))


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param([], None, id="none"),
        pytest.param([60], (60, 60, 75), id="one"),
        pytest.param([60, 90, 70], (60, 70, 112.5), id="three"),
        pytest.param([60] * 9 + [3_600], (60, 60, 75), id="one_outlier_of_ten"),
        pytest.param([1] + [60] * 9, (60, 60, 75), id="one_that_had_nothing_to_do"),
        pytest.param([10] * 10 + [1_000] * 50, (10, 10, 12.5), id="the_newest_count"),
    ],
)
def test_the_newest_say_when_it_ends_and_when_at_the_latest(
    seconds: list[int], expected: tuple[float, float, float] | None
) -> None:
    found = eta_of(START, [timedelta(seconds=one) for one in seconds])

    assert found == (None if expected is None else Eta(*map(after, expected)))


@pytest.mark.parametrize(
    ("ran_s", "left"),
    [
        pytest.param(0, (40, 20, 60), id="begins"),
        pytest.param(39.9999, (0.001, 0.001, 20), id="never_zero"),
        pytest.param(40, (20, 0.001, 20), id="past_the_probable_end"),
        pytest.param(59, (1, 0.001, 1), id="nearly_too_long"),
    ],
)
def test_what_is_left_is_never_nothing(ran_s: float, left: tuple[float, ...]) -> None:
    found = left_of(ETA, after(ran_s))

    assert (found.eta_s, found.eta_earliest_s, found.eta_latest_s) == left
    assert not found.is_longer_than_usual


@pytest.mark.parametrize("ran_s", [60, 3_600])
def test_past_the_latest_end_it_takes_longer_than_usual(ran_s: float) -> None:
    assert left_of(ETA, after(ran_s)) == Left(is_longer_than_usual=True)


def test_without_an_estimate_nothing_is_said() -> None:
    assert left_of(None, START) == Left()
