"""Each benchmark runs, at tiny sizes: what nobody runs rots."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest

from benchmarks import (
    bench_apply,
    bench_downtime,
    bench_due,
    bench_events,
    bench_idle,
    bench_web,
    trace_way,
)
from benchmarks.harness import SMALL, Measure, Stack, stack
from benchmarks.run_all import MEASURES

# The others wait for ticks of real daemons, and for workers: once is enough.
IN_THIS_PROCESS = (bench_apply, bench_downtime, bench_due, bench_events, bench_idle)
CASES = [
    *(("sqlite", measure) for measure in MEASURES),
    *(("postgresql", module.measure) for module in IN_THIS_PROCESS),
]


@pytest.fixture(scope="module")
def servers_of() -> Iterator[Callable[[str], Stack]]:
    """By store, a database and a broker of their own, started once."""
    with ExitStack() as started:
        yield cache(lambda store: started.enter_context(stack(store)))


@pytest.mark.parametrize(
    ("store", "measure"),
    CASES,
    ids=[f"{store}-{measure.__module__.split('.')[-1]}" for store, measure in CASES],
)
def test_a_benchmark_measures_something(
    servers_of: Callable[[str], Stack], store: str, measure: Measure
) -> None:
    if measure is bench_web.measure and shutil.which("wrk") is None:
        pytest.skip("wrk is not installed")

    figures = measure(servers_of(store), SMALL)

    assert figures
    assert all(one.what and one.unit and one.value >= 0 for one in figures)


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_the_way_of_an_action_is_traced_to_its_end(
    servers_of: Callable[[str], Stack], store: str
) -> None:
    found = {row.pop("station"): row for row in trace_way.measure(servers_of(store))}

    assert all(value for row in found.values() for value in row.values())
    whole, parts = found["from JSON to its end"], [found[name] for name in trace_way.WAY]
    assert {name for part in parts for name in part["names"]} == set(whole["names"])
    assert sum(part["transactions"] for part in parts) == whole["transactions"]
    assert "tasks/execute.py" in whole["names"]
