"""A server in a private network namespace, on addresses that no source may reach."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.namespaces import own_namespaces

ROOT = Path(__file__).resolve().parents[3]
INSIDE = Path(__file__).with_name("in_namespace.py")
HIDDEN = ("192.0.0.192", "168.63.129.16", "100.100.100.200", "169.254.169.254", "fec0::1")


def test_neither_a_source_nor_a_redirect_reaches_an_address_of_the_inside() -> None:
    """The namespace has a public address and the hidden ones, and no way out."""
    alone = own_namespaces("--map-root-user", "--net")
    if not shutil.which("ip"):
        pytest.skip("this machine has no ip, which gives a namespace its addresses")

    done = subprocess.run(
        [*alone, sys.executable, "-P", str(INSIDE), *HIDDEN],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "public: fetched"
    assert [line.partition(": ")[0] for line in lines[1:-1]] == [
        f"{way} {address}" for address in HIDDEN for way in ("direct", "redirect")
    ]
    assert all("leads to the private address" in line for line in lines[1:-1])
    assert lines[-1] == "asked of the hidden addresses: []"
