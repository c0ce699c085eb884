"""Some simulated worlds break no promise; `make worlds` lives through more, CI those of the day."""

import os
import subprocess
import sys

from tests.acceptance.processes import ROOT


def lived(*arguments: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.worlds", "--processes", "1", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"},
    )  # fmt: skip
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_no_promise_is_broken_in_some_worlds() -> None:
    status, output = lived("--seed", "1", "--worlds", "4")

    assert status == 0, output
    assert output[-1].startswith("worlds 4, steps "), output
    assert output[-1].endswith(", violations 0")


def test_no_promise_is_broken_in_a_world_on_postgresql() -> None:
    status, output = lived("--store", "postgresql", "--worlds", "1", "--seed", "4")

    assert status == 0, output


def test_the_same_seed_is_the_same_world() -> None:
    first, second = (lived("--worlds", "1", "--seed", "3") for _ in range(2))

    assert first == second
