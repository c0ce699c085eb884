"""Random actions under random faults violate no rule; `make chaos` storms for minutes."""

import gc
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from random import SystemRandom

import pytest

from runtime.config import Settings
from tests.acceptance.installation import installed
from tests.chaos.storm import Storm, environment
from tests.rabbitmq import running_node
from tests.servers import running_broker

SHORT_S = 15.0
LONG_S = float(os.environ.get("CHAOS_SECONDS") or 180)
# A limit for the whole test: start, storm, calm, checks.
AROUND_S = 240
# Chosen for a short storm in which the clock goes back and each server fails.
FIXED = {"sqlite": 19271, "postgresql": 1288}
GIVEN = [int(seed) for seed in os.environ.get("CHAOS_SEEDS", "").replace(",", " ").split()]
STORES = tuple(FIXED)
PLACES = [*((store, "redis") for store in STORES), ("postgresql", "rabbitmq")]

MakeStorm = Callable[[str, str, int, float], Storm]


@pytest.fixture
def make_storm(
    request: pytest.FixtureRequest, home_of: Callable[[str], Settings]
) -> Iterator[MakeStorm]:
    """Return a factory of storms on a store and a broker; all their processes end with the test."""
    with ExitStack() as servers:

        def make(store: str, broker: str, seed: int, seconds: float) -> Storm:
            redis = servers.enter_context(running_broker())
            node = servers.enter_context(running_node()) if broker == "rabbitmq" else None
            settings = home_of(store)
            url = node.url if node else None
            own = installed(settings, redis, url, **environment(settings.home))
            is_served = store == "postgresql"
            server = request.getfixturevalue("postgresql") if is_served else None
            if server is not None:
                # Other tests use the same server: as fast as before.
                servers.callback(server.start)
                servers.callback(server.stop)
            installation = servers.enter_context(own)
            return Storm(installation, (server, node or redis), seed, seconds)

        yield make
    # The client of RabbitMQ leaves the socket of a handshake that the node broke off.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def judge(make_storm: MakeStorm, place: tuple[str, str], seed: int, seconds: float) -> None:
    """Run a storm; fail with all violations, the schedule, and how to repeat it."""
    storm = make_storm(*place, seed, seconds)
    again = f"make chaos SECONDS={seconds:g} SEEDS={seed}"
    # pytest shows it at once with -s, otherwise with a failure.
    sys.stderr.write(f"storm on {' and '.join(place)}; again: {again}\n")
    violated = storm.run()
    facts = storm.facts()
    # Of the last storms, pytest keeps the folders.
    kept = storm.installation.home / "facts.json"
    rows = {**facts.tables, "log": facts.log, "journal": facts.journal}
    kept.write_text(json.dumps(rows, default=str))

    assert violated == [], "\n".join([*violated, storm.story(), f"kept: {kept}", again])
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
    judge(make_storm, place, SystemRandom().randrange(10**9) if seed is None else seed, LONG_S)
