"""`make fuzz`: mutate the kept corpus for minutes, and keep each input that fails."""

import argparse
import logging
import os
import subprocess
import sys
from importlib.util import find_spec
from random import SystemRandom

from runtime.clock import monotonic
from tests.fuzz.driving import failure_of
from tests.fuzz.kept import keep
from tests.fuzz.kinds import KINDS, Kind

# Hypothesis begins anew after so many times what takes a second or two.
ROUND = 10
LONGEST_TEXT = 300


def main() -> int:
    """Fuzz each kind for its share of the time; return 1 if an input failed."""
    given = _arguments()
    # Each item quarantined is a line.
    logging.disable()
    kinds = given.kinds or list(KINDS)
    seed = SystemRandom().randrange(2**32) if given.seed is None else given.seed
    share_s = given.minutes * 60 / len(kinds)
    _say(f"seed {seed}; {share_s:.0f} s for each of {', '.join(kinds)}")
    failed = [name for name in kinds if not _fuzz(KINDS[name], seed, share_s)]
    _say(f"failed: {', '.join(failed)}" if failed else "nothing failed")
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], metavar="KIND")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int)
    return parser.parse_args()


def _fuzz(kind: Kind, seed: int, share_s: float) -> bool:
    """Fuzz one kind; return whether every input passed."""
    is_guided = kind.is_guided and find_spec("atheris") is not None
    passed = _guided(kind, seed, share_s / 2) if is_guided else True
    return _random(kind, seed, share_s / (2 if is_guided else 1)) and passed


def _random(kind: Kind, seed: int, share_s: float) -> bool:
    """Fuzz by random mutation until the time is over or an input fails."""
    tried, ends_at = 0, monotonic() + share_s
    with kind.opened() as check:
        while monotonic() < ends_at:
            failure = failure_of(kind, check, seed=seed + tried, examples=ROUND * kind.examples)
            tried += ROUND * kind.examples
            if failure is not None:
                file = keep(kind.name, failure.given)
                _say(f"{kind.name}: seed {seed} found {file}: {failure.text[:LONGEST_TEXT]}")
                return False
    _say(f"{kind.name}: {tried} random mutations passed")
    return True


def _guided(kind: Kind, seed: int, share_s: float) -> bool:
    """Fuzz by coverage in a process of its own, which ends at the first failure."""
    command = [sys.executable, "-m", "tests.fuzz.guided", kind.name, str(seed), str(int(share_s))]
    done = subprocess.run(command, check=False, env={**os.environ, "PYTHONPATH": os.getcwd()})
    return done.returncode == 0


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
