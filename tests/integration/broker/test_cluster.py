"""A Redis in cluster mode, which is refused with its reason."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from pydantic import SecretStr

from broker.app import configure, disconnect
from broker.probe import probe
from models.errors import BrokerUnavailable
from runtime.clock import wait_for
from runtime.config import Settings
from tests.servers import START_S, Broker, free_port, redis_binary

ALL_SLOTS = ("CLUSTER", "ADDSLOTSRANGE", 0, 16383)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a cluster of one node."""
    folder: Path = tmp_path_factory.mktemp("cluster")
    node = Broker(folder, free_port())
    command = [
        redis_binary(), "--port", str(node.port), "--bind", "127.0.0.1", "--dir", str(folder),
        "--cluster-enabled", "yes", "--cluster-port", str(free_port()), "--save", "",
    ]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)

    def is_ready() -> bool:
        with node.client() as client:
            return "cluster_state:ok" in str(client.execute_command("CLUSTER", "INFO"))

    try:
        if not wait_for(lambda: process.poll() is not None or node.answers(), START_S):
            raise RuntimeError((folder / "log").read_text())
        if process.poll() is not None:
            pytest.skip("this Redis is older than 7 and takes no port for its cluster")
        with node.client() as client:
            client.execute_command(*ALL_SLOTS)
        assert wait_for(is_ready, START_S)
        yield node.port
    finally:
        process.kill()
        process.wait(START_S)


@pytest.mark.parametrize("number", [0, 2])
def test_a_cluster_is_refused_by_name(
    cluster: int, number: int, home_of: Callable[[str], Settings]
) -> None:
    url = SecretStr(f"redis://127.0.0.1:{cluster}/{number}")
    settings = home_of("sqlite").model_copy(update={"broker_url": url})
    configure(settings)

    with pytest.raises(BrokerUnavailable, match="Redis Cluster is not supported"):
        probe(settings, ["quick"])
    disconnect()


def test_a_database_that_redis_does_not_have_is_refused_with_a_remedy(
    broker: Broker, home_of: Callable[[str], Settings]
) -> None:
    url = SecretStr(broker.url.rpartition("/")[0] + "/9999")
    configure(settings := home_of("sqlite").model_copy(update={"broker_url": url}))

    with pytest.raises(BrokerUnavailable, match=r"out of range.*use a lower number"):
        probe(settings, ["quick"])
    disconnect()


def test_another_answer_is_quoted_alone(broker: Broker, home_of: Callable[[str], Settings]) -> None:
    with broker.client() as client:
        client.execute_command("ACL", "SETUSER", "default", "-lpush")
        try:
            with pytest.raises(BrokerUnavailable, match="no permissions") as refused:
                probe(home_of("sqlite"), ["quick"])
        finally:
            client.execute_command("ACL", "SETUSER", "default", "+lpush")

    assert "Cluster" not in str(refused.value)
    assert isinstance(refused.value.__cause__, redis.ResponseError)
