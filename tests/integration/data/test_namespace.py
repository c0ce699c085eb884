"""Sources in a private network namespace: addresses they may not reach, and silent ones."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.namespaces import own_namespaces

ROOT = Path(__file__).resolve().parents[3]
HIDDEN = ("192.0.0.192", "168.63.129.16", "100.100.100.200", "169.254.169.254", "fec0::1")


def run_inside(
    alone: Sequence[str], script: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*alone, sys.executable, "-P", str(Path(__file__).with_name(script)), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_neither_a_source_nor_a_redirect_reaches_an_address_of_the_inside() -> None:
    """The namespace has a public address and the hidden ones, and no way out."""
    alone = own_namespaces("--map-root-user", "--net")
    if not shutil.which("ip"):
        pytest.skip("this machine has no ip, which gives a namespace its addresses")

    done = run_inside(alone, "in_namespace.py", *HIDDEN)

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "public: fetched"
    assert [line.partition(": ")[0] for line in lines[1:-1]] == [
        f"{way} {address}" for address in HIDDEN for way in ("direct", "redirect")
    ]
    assert all("leads to a private address" in line for line in lines[1:-1])
    assert lines[-1] == "asked of the hidden addresses: []"


def test_a_silent_address_or_resolver_holds_up_nothing_beyond_its_time() -> None:
    alone = own_namespaces("--map-root-user", "--net", "--mount")
    if not shutil.which("ip"):
        pytest.skip("this machine has no ip, which brings a namespace's loopback device up")

    done = run_inside(alone, "silent_names.py")

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "silent address: done",
        "silent resolver, a fetch: http://c.example/ took longer than SCHED_FETCH_TIMEOUT_S=0.5",
        "silent resolver, a cancelled fetch: stopped",
    ]
