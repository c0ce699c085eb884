"""Random actions under random faults violate no rule; `make chaos` storms for minutes."""

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
# A limit for the whole test: start, storm, calm, checks.
AROUND_S = 240
# Chosen for a short storm in which the clock goes back and each server fails.
FIXED = {"sqlite": 2165, "postgresql": 3205}
GIVEN = [int(seed) for seed in os.environ.get("CHAOS_SEEDS", "").replace(",", " ").split()]
STORES = tuple(FIXED)
PLACES = [*((store, "redis") for store in STORES), ("postgresql", "rabbitmq")]


def any_seed() -> int:
    return SystemRandom().randrange(10**9)


def say(text: str) -> None:
    """Print a line that pytest shows at once with -s, otherwise with a failure."""
    sys.stderr.write(f"{text}\n")


def counted(storm: Storm, facts: Facts) -> str:
    certain = sum(map(len, History(facts).expected.values()))
    operations, attempts = len(facts.tables["operations"]), len(facts.tables["attempts"])
    return (
        f"{len(storm.faults)} faults, {storm.editor.done} edits: {certain} certain occurrences, "
        f"{operations} operations, {attempts} attempts"
    )


def keep(storm: Storm, facts: Facts) -> str:
    """Write the facts into the storm's folder, which pytest keeps for some runs; return it."""
    path = storm.installation.home / "facts.json"
    rows = {**facts.tables, "log": facts.log, "journal": facts.journal}
    path.write_text(json.dumps(rows, default=str))
    return f"kept: {path}"


def judge(make_storm: MakeStorm, place: tuple[str, str], seed: int, seconds: float) -> None:
    """Run a storm; fail with all violations, the schedule, and how to repeat it."""
    storm = make_storm(*place, seed, seconds)
    again = f"make chaos SECONDS={seconds:g} SEEDS={seed}"
    say(f"storm on {' and '.join(place)}; again: {again}")
    violated = storm.run()
    facts = storm.facts()
    say("\n".join([*violated, counted(storm, facts)]))

    assert violated == [], "\n".join([*violated, storm.story(), keep(storm, facts), again])
    assert len(facts.tables["operations"]) > 10


@pytest.mark.timeout(SHORT_S + AROUND_S)
@pytest.mark.parametrize("store", STORES)
def test_no_rule_is_violated_in_a_short_storm(make_storm: MakeStorm, store: str) -> None:
    judge(make_storm, (store, "redis"), FIXED[store], SHORT_S)


@pytest.mark.storm
# py-amqp may leave the socket of a RabbitMQ that was killed to the garbage collection.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(2 * LONG_S + AROUND_S)
@pytest.mark.parametrize("place", PLACES, ids="-".join)
@pytest.mark.parametrize("seed", GIVEN or [None], ids=str if GIVEN else lambda _: "any_seed")
def test_no_rule_is_violated_in_a_storm(
    make_storm: MakeStorm, place: tuple[str, str], seed: int | None
) -> None:
    judge(make_storm, place, any_seed() if seed is None else seed, LONG_S)
