"""Some simulated worlds break no promise; `make worlds` lives through more."""

import os
import re
import subprocess
import sys
from datetime import date

import pytest

from tests.acceptance.processes import ROOT

LAST_LINE = re.compile(r"worlds (\d+), steps (\d+), violations (\d+)")
DAY = date.today().toordinal() * 1_000  # noqa: DTZ011  (any day will do)


def lived(*arguments: str) -> tuple[int, str]:
    """Return the exit status and the output of some worlds."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.worlds", "--processes", "1", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("seed", [1, DAY], ids=["fixed", "day"])
def test_no_promise_is_broken_in_some_worlds(seed: int) -> None:
    status, output = lived("--seconds", "5", "--seed", str(seed))

    assert status == 0, output
    assert (found := LAST_LINE.fullmatch(output.splitlines()[-1])) is not None, output
    assert int(found[1]) >= 1
    assert found[3] == "0"


def test_no_promise_is_broken_in_a_world_on_postgresql() -> None:
    status, output = lived("--store", "postgresql", "--worlds", "1", "--seed", str(DAY))

    assert status == 0, output


def test_the_same_seed_is_the_same_world() -> None:
    first, second = (lived("--worlds", "1", "--seed", "3", "--pairs") for _ in range(2))

    assert first == second
