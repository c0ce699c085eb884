"""Random actions under random faults keep every promise; `make chaos` storms for minutes."""

import json
import os
import sys
from random import SystemRandom

import pytest

from tests.chaos.conftest import MakeStorm
from tests.chaos.facts import Facts
from tests.chaos.history import History
from tests.chaos.storm import Storm

SHORT_S = 15.0
LONG_S = float(os.environ.get("CHAOS_SECONDS") or 180)
# A test ends in any case: start, storm, calm, judgement.
AROUND_S = 240
# Chosen for what happens in so short a time: the clock goes back, and each server fails.
FIXED = {"sqlite": 2165, "postgresql": 3205}
GIVEN = [int(seed) for seed in os.environ.get("CHAOS_SEEDS", "").replace(",", " ").split()]
STORES = tuple(FIXED)


def any_seed() -> int:
    """Return a seed that nobody chose."""
    return SystemRandom().randrange(10**9)


def say(text: str) -> None:
    """Write a line that pytest shows at once with -s, and else with a failure."""
    sys.stderr.write(f"{text}\n")


def told(storm: Storm, facts: Facts) -> str:
    """Return how much there was to be judged."""
    certain = sum(map(len, History(facts).expected.values()))
    operations, attempts = len(facts.tables["operations"]), len(facts.tables["attempts"])
    return (
        f"{len(storm.faults)} faults, {storm.editor.done} edits: {certain} certain occurrences, "
        f"{operations} operations, {attempts} attempts"
    )


def keep(storm: Storm, facts: Facts) -> str:
    """Write the facts into the storm's folder, which pytest keeps for some runs; name it."""
    path = storm.installation.home / "facts.json"
    rows = {**facts.tables, "log": facts.log, "journal": facts.journal}
    path.write_text(json.dumps(rows, default=str))
    return f"kept: {path}"


def judge(make_storm: MakeStorm, store: str, seed: int, seconds: float) -> None:
    """Storm and fail with every violation, the schedule, and how to storm again."""
    storm = make_storm(store, seed, seconds)
    again = f"make chaos SECONDS={seconds:g} SEEDS={seed}"
    say(f"storm on {store}; again: {again}")
    violated = storm.run()
    facts = storm.facts()
    say("\n".join([*violated, told(storm, facts)]))

    assert violated == [], "\n".join([*violated, storm.story(), keep(storm, facts), again])
    assert len(facts.tables["operations"]) > 10


@pytest.mark.timeout(SHORT_S + AROUND_S)
@pytest.mark.parametrize("store", STORES)
def test_every_promise_holds_in_a_short_storm(make_storm: MakeStorm, store: str) -> None:
    judge(make_storm, store, FIXED[store], SHORT_S)


@pytest.mark.storm
@pytest.mark.timeout(2 * LONG_S + AROUND_S)
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("seed", GIVEN or [None], ids=str if GIVEN else lambda _: "any_seed")
def test_every_promise_holds_in_a_storm(
    make_storm: MakeStorm, store: str, seed: int | None
) -> None:
    judge(make_storm, store, any_seed() if seed is None else seed, LONG_S)
