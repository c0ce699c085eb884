"""Live through worlds for a while: `make worlds SECONDS=600 SEED=17`."""

import argparse
import logging
import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from random import SystemRandom

from runtime.clock import monotonic
from tests.compiled import share_compiled
from tests.worlds.plan import Plan, drawn, shrunk
from tests.worlds.world import World

# Of a story.
MOST_LINES = 30


def say(*lines: object) -> None:
    """Write lines."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


@dataclass
class Tally:
    """What the worlds so far have met."""

    worlds: int = 0
    steps: int = 0
    violations: int = 0
    met: Counter[tuple[str, str]] = field(default_factory=Counter)

    def live(self, plan: Plan) -> list[str]:
        """Live through a world; return its violations."""
        world = World(plan)
        found = world.run()
        self.worlds, self.steps = self.worlds + 1, self.steps + world.loom.steps
        self.violations += len(found)
        self.met += world.faults.met
        return found

    def report(self, *, pairs: bool) -> None:
        """Write the faults by kind, what was never met, and the totals."""
        by_fault = Counter[str]()
        for (_, fault), count in self.met.items():
            by_fault[fault] += count
        say(*(f"{count:8} {fault}" for fault, count in sorted(by_fault.items())))
        steps = sorted({step for step, _ in self.met})
        never = [(step, fault) for step in steps for fault in by_fault
                 if (step, fault) not in self.met]  # fmt: skip
        say(*(f"never: {step}, {fault}" for step, fault in never if pairs))
        say(f"pairs of a step and a fault: {len(self.met)} met, {len(never)} never")
        say(f"worlds {self.worlds}, steps {self.steps}, violations {self.violations}")


def main() -> int:
    """Live through worlds; return 1 if one of them breaks a rule."""
    parser = argparse.ArgumentParser(prog="worlds")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**9))
    parser.add_argument("--worlds", type=int, default=sys.maxsize, help="at most so many")
    parser.add_argument("--stop", action="store_true", help="at the first that fails")
    parser.add_argument("--shrink", action="store_true", help="make what fails small")
    parser.add_argument("--pairs", action="store_true", help="name the pairs that were never met")
    given = parser.parse_args()
    began, tally = monotonic(), Tally()
    say(f"first seed {given.seed}")
    # What is loaded late is loaded now: a world is the same alone and after others.
    World(drawn(0)).run()
    while monotonic() - began < given.seconds and tally.worlds < given.worlds:
        plan = drawn(given.seed + tally.worlds)
        found = tally.live(plan)
        if found:
            say(f"seed {plan.seed}: {len(found)} violations", *found[:5])
        if found and given.shrink:
            say(*smallest(plan, found[0].partition(":")[0]))
        if found and given.stop:
            break
    tally.report(pairs=given.pairs)
    return 1 if tally.violations else 0


def smallest(plan: Plan, rule: str) -> list[str]:
    """Return the story of the least plan that breaks the same rule."""

    def fails(smaller: Plan) -> bool:
        return any(one.startswith(rule) for one in World(smaller).run())

    least = shrunk(plan, fails)
    world = World(least)
    found = world.run()
    return [*world.story[:MOST_LINES], *found[:3], repr(least)]


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets is a part of the story.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.worlds", *sys.argv[1:]])
    logging.getLogger("minutebook").setLevel(logging.ERROR)
    logging.getLogger("minutebook").propagate = False
    share_compiled()
    sys.exit(main())
