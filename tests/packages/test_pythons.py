"""Minutebook on the other releases of Python, with what the lock files name for each."""

import subprocess
from pathlib import Path

import pytest

from tests.packages.debian import inside, make_root
from tests.packages.environments import ROOT, find_python, passes

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(3600)]
LOCKS = ("requirements/server.lock", "requirements/dev.lock", "requirements/client.lock")
TESTS = (
    "tests/unit", "tests/integration/store", "tests/integration/scheduler",
    "tests/integration/tasks", "tests/acceptance/test_daemons.py",
    "tests/acceptance/test_killed_workers.py", "tests/acceptance/test_follow.py",
    "tests/acceptance/test_follow_phases.py",
)  # fmt: skip


def command_of(version: str, folder: Path) -> list[str]:
    """Return what runs this Python: one of this machine, else that of Debian's next release."""
    found = find_python(version)
    if found is not None:
        return [found]
    needed = (f"python{version}", f"python{version}-venv", "openssl")
    root = make_root("testing", needed, folder / "root")
    return [*inside(root, ROOT, folder), f"python{version}"]


@pytest.mark.parametrize("version", ["3.12", "3.13", "3.14"])
def test_python(version: str, tmp_path: Path) -> None:
    *begin, python = command_of(version, tmp_path)
    environment = tmp_path / "env"
    subprocess.run([*begin, python, "-m", "venv", str(environment)], check=True)
    ours = [*begin, str(environment / "bin" / "python")]
    pip = [*ours, "-m", "pip", "install", "-q", "--no-deps"]
    for lock in LOCKS:
        # celery-once has no wheel.
        wheels = ("--only-binary", ":all:", "--no-binary", "celery-once")
        locked = ("--require-hashes", *wheels, "-r", lock)
        subprocess.run([*pip, *locked], cwd=ROOT, check=True)
    source = ("--no-build-isolation", "-e", "release/client", "-e", ".")
    subprocess.run([*pip, *source], cwd=ROOT, check=True)

    passes(TESTS, python=ours)
