"""Live through worlds for a while: `make worlds SECONDS=600 SEED=17 STORE=sqlite`."""

import argparse
import os
import sys
from collections import Counter
from multiprocessing import get_context
from random import SystemRandom

from tests.worlds.lanes import live, say


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


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets is a part of the story.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.worlds", *sys.argv[1:]])
    sys.exit(main())
