"""A primary, its replica and a Sentinel that lets the replica take over."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from redis.sentinel import MasterNotFoundError, Sentinel

from runtime.clock import wait_for
from tests.servers import START_S, Broker, free_port, launched, redis_binary, running_broker

MASTER_NAME = "minutebook"
# How long the primary must be silent until the Sentinel acts.
SILENT_MS = 500
TAKEN_OVER_S = 60


@dataclass
class Replicated:
    """Two servers and a Sentinel on loopback ports."""

    primary: Broker
    replica: Broker
    port: int

    @property
    def url(self) -> str:
        """The broker's URL; the first Sentinel of it does not answer."""
        away = f"sentinel://127.0.0.1:{free_port()}"
        return f"{away};sentinel://127.0.0.1:{self.port}/0?master_name={MASTER_NAME}"

    def fall_behind(self) -> None:
        """Let the replica get nothing more of what the primary takes."""
        with self.replica.client() as client:
            client.replicaof("127.0.0.1", str(free_port()))

    def fail_over(self, *, loses: bool = False) -> None:
        """Kill the primary; return when the replica has taken over."""
        if not loses:
            with self.primary.client() as client:
                # What the primary has confirmed and the replica lacks would be lost with it.
                client.wait(1, 5_000)
        self.primary.stop(signal.SIGKILL)
        assert wait_for(self._has_taken_over, TAKEN_OVER_S)

    def _has_taken_over(self) -> bool:
        # For a moment a Sentinel names the replica, but still calls it down.
        watching: Any = Sentinel([("127.0.0.1", self.port)])  # type: ignore[no-untyped-call]
        with watching.sentinels[0], suppress(MasterNotFoundError):
            _, port = watching.discover_master(MASTER_NAME)
            return bool(port == self.replica.port)
        return False


@contextmanager
def replicated(folder: Path) -> Iterator[Replicated]:
    """Run all three during the block."""
    with running_broker() as primary, running_broker() as replica:
        with replica.client() as client:
            client.replicaof("127.0.0.1", str(primary.port))
        assert wait_for(lambda: _is_following(replica), START_S)
        port = free_port()
        watching = _sentinel(folder, port, primary.port)
        try:
            assert wait_for(lambda: _knows_replica(port), START_S)
            yield Replicated(primary, replica, port)
        finally:
            watching.kill()
            watching.wait(START_S)


def _sentinel(folder: Path, port: int, primary: int) -> subprocess.Popen[bytes]:
    config = folder / "sentinel.conf"
    config.write_text(
        f"port {port}\nbind 127.0.0.1\ndir {folder}\n"
        f"sentinel monitor {MASTER_NAME} 127.0.0.1 {primary} 1\n"
        f"sentinel down-after-milliseconds {MASTER_NAME} {SILENT_MS}\n"
        f"sentinel failover-timeout {MASTER_NAME} 5000\n"
    )
    return launched([redis_binary(), str(config), "--sentinel"], folder)


def _is_following(replica: Broker) -> bool:
    with replica.client() as client:
        info: Any = client.info("replication")
    return bool(info.get("master_link_status") == "up")


def _knows_replica(port: int) -> bool:
    try:
        with redis.Redis(port=port) as client:
            known: Any = client.sentinel_slaves(MASTER_NAME)
    except redis.RedisError:
        return False
    return bool(known)
