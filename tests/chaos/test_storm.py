"""Random actions under random faults keep every promise; `make chaos` storms for minutes."""

import json
import os
import sys
from random import SystemRandom

import pytest

from tests.chaos.conftest import MakeStorm
from tests.chaos.history import History

SECONDS = float(os.environ.get("CHAOS_SECONDS") or 25)
# A test ends in any case: start, storm, calm, judgement.
MOST_S = 2 * SECONDS + 240
FIXED = 20260721
GIVEN = [int(seed) for seed in os.environ.get("CHAOS_SEEDS", "").replace(",", " ").split()]
STORES = ("sqlite", "postgresql")


def any_seed() -> int:
    return SystemRandom().randrange(10**9)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def judge(make_storm: MakeStorm, store: str, seed: int) -> None:
    storm = make_storm(store, seed, SECONDS)
    _say(f"storm on {store}: CHAOS_SEEDS={seed} CHAOS_SECONDS={SECONDS:g}")
    found = storm.run()
    facts = storm.facts()
    tables = facts.tables
    if found:
        # pytest keeps the folder of a test for some runs; the database may be gone.
        kept = {**tables, "log": facts.log, "journal": facts.journal}
        path = storm.installation.home / "facts.json"
        path.write_text(json.dumps(kept, default=str))
        _say("\n".join([*found, f"kept in {path.parent}"]))
    done = f"{len(storm.faults)} faults, {storm.editor.done} edits"
    certain = sum(map(len, History(facts).expected.values()))
    ran = f"{len(tables['operations'])} operations, {len(tables['attempts'])} attempts"
    _say(f"{done}: {certain} certain occurrences, {ran}")

    again = f"storm again: make chaos SECONDS={storm.seconds:g} SEEDS={seed} ({store})"
    assert found == [], "\n".join([*found, storm.story(), again])
    assert len(tables["operations"]) > 10


@pytest.mark.storm
@pytest.mark.timeout(MOST_S)
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("seed", GIVEN or [FIXED])
def test_every_promise_holds_in_a_storm(make_storm: MakeStorm, store: str, seed: int) -> None:
    judge(make_storm, store, seed)


@pytest.mark.skipif(bool(GIVEN), reason="the seeds are given")
@pytest.mark.storm
@pytest.mark.timeout(MOST_S)
def test_every_promise_holds_in_a_storm_that_nobody_saw_before(make_storm: MakeStorm) -> None:
    seed = any_seed()
    judge(make_storm, STORES[seed % 2], seed)
