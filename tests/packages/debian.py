"""Other releases of Debian in folders, for programs that no package registry of ours has.

`debootstrap` fetches them. A program of such a folder sees it as its root, beside this machine's
devices, processes and folder of temporary files.
"""

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

# What the program sees of this machine. `exec` all the way: signals reach the program itself.
ENTER = """
here=$PWD
mount --bind "$1" "$1"; cd "$1"; shift
while [ "$1" != -- ]; do mkdir -p ".$1"; mount --rbind "$1" ".$1"; shift; done
shift
cp --remove-destination /etc/hosts /etc/resolv.conf etc/
pivot_root . mnt
cd "$here" 2>/dev/null || cd /
exec "$@"
"""
SEEN = ("/dev", "/proc", "/sys", "/etc/ssl", "/usr/share/ca-certificates")


def make_root(release: str, packages: Sequence[str], folder: Path) -> Path:
    """Make a folder with a release of Debian; skips the test where that is impossible."""
    if os.getuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip(f"fetching Debian's {release} needs debootstrap, and root")
    command = ["debootstrap", "--variant=minbase", f"--include={','.join(packages)}", release]
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"Debian's {release} cannot be fetched: {done.stdout.splitlines()[-1]}")
    # As which the tests run PostgreSQL.
    with (folder / "etc/passwd").open("a") as accounts:
        accounts.write("tests:x:1000:1000::/:/bin/sh\n")
    return folder


def inside(root: Path, *folders: Path) -> list[str]:
    """Return the beginning of a command that runs in the root, with some of our folders."""
    seen = [*SEEN, tempfile.gettempdir(), *map(str, folders)]
    return ["unshare", "--mount", "sh", "-euc", ENTER, "sh", str(root), *seen, "--"]


def write_command(root: Path, program: str, folder: Path) -> None:
    """Write a command into `folder` that runs a program of the root."""
    words = shlex.join([*inside(root), program])
    script = folder / Path(program).name
    script.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    script.chmod(0o755)
