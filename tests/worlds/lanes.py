"""A lane: worlds one after another in one process, and what they have met."""

import argparse
import logging
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from multiprocessing import get_context
from random import SystemRandom

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


def main() -> int:
    """Live through worlds; return 1 if one of them breaks a rule."""
    parser = argparse.ArgumentParser(prog="worlds")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**9))
    parser.add_argument("--store", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--worlds", type=int, default=sys.maxsize, help="at most so many")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    say(f"first seed {given.seed}")
    count, total = min(given.processes, given.worlds), Counter[str]()
    if count == 1:
        total = live((given, 0))
    else:
        with get_context("spawn").Pool(count) as pool:
            for one in pool.imap_unordered(live, [(given, number) for number in range(count)]):
                total.update(one)
    say(f"worlds {total['worlds']}, steps {total['steps']}, violations {total['violations']}")
    return 1 if total["violations"] else 0
