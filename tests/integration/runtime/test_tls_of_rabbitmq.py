"""The way to RabbitMQ by TLS, as the handbook writes its URL."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection
from kombu.exceptions import OperationalError

from broker.app import transport_options
from runtime.clock import wait_for
from tests.certificate import make_certificate
from tests.nginx import listens
from tests.rabbitmq import running_node
from tests.servers import START_S, free_port, temporary_folder


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder with two certificates: the servers' own, and one of somebody else."""
    made = temporary_folder()
    for name in ("own", "other"):
        (made / name).mkdir()
        make_certificate(made / name)
    yield made
    shutil.rmtree(made)


def reach(url: str) -> None:
    """Connect to the broker as our processes do."""
    options: dict[str, Any] = {"transport_options": transport_options(url)}
    with Connection(url, **options) as connection:
        connection.ensure_connection(max_retries=1, interval_start=0, timeout=5)
        assert connection.connected


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
