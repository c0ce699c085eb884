"""A lane: worlds one after another in one process, and what they have met."""

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

from runtime.clock import monotonic
from tests.compiled import share_compiled
from tests.servers import PostgreSQL
from tests.worlds.plan import Plan, drawn
from tests.worlds.postgresql import cluster
from tests.worlds.world import World

# Of a story.
MOST_LINES = 30


def say(*lines: object) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def live(asked: tuple[argparse.Namespace, int]) -> Counter[str]:
    """Live through every so manieth world; return the numbers of worlds, steps and violations."""
    given, number = asked
    _be_quiet()
    tally = Counter[str]()
    # What is loaded late is loaded now: a world is the same alone and after others.
    World(drawn(0)).run()
    with ExitStack() as stack:
        server = None
        if given.store == "postgresql":
            server = stack.enter_context(cluster())
        for plan in _plans(given, number):
            found = _told(tally, plan, server)
            if found:
                say(f"seed {plan.seed}: violations", *found)
    return tally


def _told(tally: Counter[str], plan: Plan, server: PostgreSQL | None) -> list[str]:
    """Live through a world; return the end of its story, and its violations, if it has some.

    An error that ends it is a violation.
    """
    try:
        world = World(plan, server)
        found = world.run()
    except Exception as error:
        # In words: not every error can be sent to another process.
        tally["violations"] += 1
        return [f"raised: {error!r}"]
    tally.update(worlds=1, steps=world.loom.steps, violations=len(found))
    return [*world.story[-MOST_LINES:], *found[:5]] if found else []


def _plans(given: argparse.Namespace, number: int) -> Iterator[Plan]:
    began = monotonic()
    while monotonic() - began < given.seconds and number < given.worlds:
        yield drawn(given.seed + number)
        number += given.processes


def _be_quiet() -> None:
    logging.getLogger("minutebook").setLevel(logging.ERROR)
    logging.getLogger("minutebook").propagate = False
    share_compiled()
