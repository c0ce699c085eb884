from datetime import UTC, datetime

import pytest

from models.store.clocks import skew_s
from runtime.skew import SkewWatch
from tests.ticks import SECOND

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("asked", "answered", "expected"),
    [
        pytest.param(NOON, NOON, 0.0, id="right"),
        pytest.param(NOON - 14 * SECOND, NOON, 0.0, id="held back on the way there"),
        pytest.param(NOON, NOON + 14 * SECOND, 0.0, id="held back on the way back"),
        pytest.param(NOON + 3 * SECOND, NOON + 5 * SECOND, 3.0, id="ahead"),
        pytest.param(NOON - 62 * SECOND, NOON - 60 * SECOND, -60.0, id="behind"),
    ],
)
def test_the_database_read_its_clock_at_any_moment_of_the_round_trip(
    asked: datetime, answered: datetime, expected: float
) -> None:
    assert skew_s(asked, NOON, answered) == expected


def test_a_clock_that_is_off_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "minutebook.clock")
    watch = SkewWatch()

    offs = []
    for skew in (1.9, 2.1, 30.0, -30.0, 0.5):
        watch.note(skew)
        offs.append(watch.is_off)

    assert offs == [False, True, True, True, False]
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "+2.1 s off" in caplog.text


def test_a_wall_clock_that_was_set_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    watch = SkewWatch()

    for wall, monotonic in ((1000.0, 10.0), (1010.5, 20.0), (4620.0, 30.0), (4630.0, 40.0)):
        watch.note_wall(wall, monotonic)

    assert [record.message for record in caplog.records] == [
        "this machine's clock was set by +3599.5 s"
    ]
