"""The soaks run, for a day and for seconds; what grows or is late does not pass."""

import logging
from collections.abc import Iterator

import pytest

from benchmarks.harness import Stack, stack
from benchmarks.soak.findings import at_most, equals, stays_flat
from benchmarks.soak.real_load import Load, carry
from benchmarks.soak.simulated import simulate


@pytest.fixture(scope="module")
def servers() -> Iterator[Stack]:
    with stack("postgresql") as started:
        yield started


@pytest.mark.parametrize(
    ("samples", "holds"),
    [
        pytest.param([1, 50, 90, 100, 100, 100, 100, 101, 100], True, id="flat_once_filled"),
        pytest.param([10, 20, 30, 40, 50, 60, 70, 80, 90], False, id="grows"),
        pytest.param([100, 100, 100, 100, 100, 100, 100, 100, 111], True, id="within_the_slack"),
        pytest.param([5], True, id="one_sample"),
    ],
)
def test_what_grows_after_it_was_filled_does_not_hold(samples: list[float], holds: bool) -> None:
    assert stays_flat("memory", samples, "MB", slack=2).holds is holds


def test_a_finding_says_what_was_seen() -> None:
    assert str(at_most("latest tick", 2.5, 1, "s")) == (
        "FAIL latest tick: 2.500 s, at most 1.000 s"
    )
    assert str(equals("missed", 0, 0)) == "ok   missed: 0, should be 0"


def test_a_simulated_day_runs_each_occurrence_once(
    servers: Stack, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    found = {one.what: one for one in simulate(servers, days=1, tick_minutes=120)}

    assert [what for what, one in found.items() if not one.holds] == []


def test_seconds_of_load_lose_no_occurrence(servers: Stack) -> None:
    found = {one.what: one for one in carry(servers, Load(0.2, actions=3, history=10))}

    assert found["load: operations that did not succeed"].holds
    lost = [one for what, one in found.items() if what.startswith("load: occurrences without")]
    assert [one.holds for one in lost] == [True]
