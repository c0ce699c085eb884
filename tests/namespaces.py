"""Namespaces of Linux, in which a test runs a command: of users, and of what else it names."""

import shutil
import subprocess
from collections.abc import Sequence

import pytest


def own_namespaces(*options: str, first: Sequence[str] = ()) -> list[str]:
    """Return what runs a command in namespaces of its own; skips where this account may make none.

    `options` are those of unshare(1), which knows the namespaces and the accounts in them; `first`
    prepares them, and then runs the command in its turn.
    """
    command = ["unshare", "--user", *options, *first]
    if shutil.which("unshare") is None or _fails([*command, "true"]):
        pytest.skip("this machine has or allows no such namespaces")
    return command


def _fails(command: Sequence[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode != 0
