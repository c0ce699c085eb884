"""The last runs of an action as bars."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from services.operations.last_runs import LastRun
from services.overview.figures import Hour
from web.dashboard.drawing.bars import HIGH, STEP, STUB, USUAL, Bars, bars, hours

DUE = datetime(2027, 1, 4, 12, tzinfo=UTC)
ID = UUID(int=1)


def run(state: str = "success", **known: Any) -> LastRun:
    plain = {"at": DUE, "took_s": None, "why": None}
    return LastRun.model_validate({"id": ID, "state": state, **plain, **known})


def drawn(*runs: LastRun) -> Bars:
    return bars(runs, "Europe/Paris")


def test_the_newest_run_stands_at_the_right_edge() -> None:
    found = drawn(run(at=DUE - timedelta(hours=1)), run())

    assert [one.x for one in found.bars] == [found.width - 2 * STEP, found.width - STEP]


def test_a_bar_is_as_high_as_its_run_took_long() -> None:
    short, long = drawn(run(took_s=1.0), run(took_s=60.0)).bars

    assert short.height < USUAL < long.height == HIGH


@pytest.mark.parametrize(
    ("state", "height"),
    [
        pytest.param("failed", HIGH, id="failed_is_whole"),
        pytest.param("skipped", STUB, id="skipped_is_a_stub"),
        pytest.param("handed_over", USUAL, id="of_unknown_duration"),
    ],
)
def test_a_state_has_its_height_whatever_its_run_took(state: str, height: int) -> None:
    first, _ = drawn(run(state), run(took_s=60.0)).bars

    assert first.height == height


def test_a_row_says_how_many_runs_are_in_each_state() -> None:
    assert drawn(run(), run("failed"), run()).summary == "1 failed, 2 success"
    assert drawn().summary == ""


def test_a_bar_says_when_how_long_and_why_on_the_clock_of_the_zone() -> None:
    (one,) = drawn(run("failed", took_s=2.0, why="no such host")).bars

    assert one.tip == "failed, Mon 2027-01-04 13:00 +01:00, 2.0 s: no such host"


def test_one_failure_beside_thousands_of_runs_is_seen() -> None:
    runs, failed, *_ = hours([Hour(since=DUE, runs=9_000, failed=1)], "UTC").bars

    assert (runs.height, failed.height) == (HIGH, 2)
    assert failed.tip == "Mon 2027-01-04 12:00 +00:00: 9,000 runs, 1 failed"
