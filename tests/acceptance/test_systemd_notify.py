"""The daemon under a service manager: what it says over `NOTIFY_SOCKET`, and when it is silent."""

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from runtime.clock import monotonic
from tests.acceptance.installation import LEASE_S, Installation
from tests.acceptance.processes import SOON_S, Process
from tests.acceptance.standstill import standing_still
from tests.servers import PostgreSQL

# One store: PostgreSQL, which can hang.
pytestmark = pytest.mark.parametrize("store", ["postgresql"])

# The loop turns four times in a lease.
SILENCE_S = 2 * LEASE_S
ALIVE = "WATCHDOG=1"


class Manager:
    """The socket of a service manager."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + address[1:] if address.startswith("@") else address)

    def next(self, within_s: float = SOON_S) -> list[str]:
        """Return the next messages; raises TimeoutError if none come."""
        self.socket.settimeout(within_s)
        return self.socket.recv(4096).decode().split("\n")

    def hears(self, start: str) -> str:
        """Return the next message that begins so, and pass over all others."""
        until_s = monotonic() + SOON_S
        while monotonic() < until_s:
            for one in self.next():
                if one.startswith(start):
                    return one
        raise AssertionError(f"no {start}")

    def hears_nothing(self) -> None:
        """Pass over what was sent before; fail if more comes."""
        self.socket.setblocking(False)
        while True:
            try:
                self.socket.recv(4096)
            except BlockingIOError:
                break
        with pytest.raises(TimeoutError):
            self.next(SILENCE_S)


@contextmanager
def managed(installation: Installation, address: str) -> Iterator[tuple[Manager, Process]]:
    manager = Manager(address)
    with manager.socket:
        yield manager, installation.daemon({"NOTIFY_SOCKET": address})


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_it_is_ready_after_a_tick_and_says_that_it_stops(
    installation: Installation, kind: str
) -> None:
    path = str(installation.home / "notify")
    with managed(installation, path if kind == "path" else f"@{path}") as (manager, daemon):
        assert manager.hears("STATUS=").startswith("STATUS=last tick 20")
        assert manager.hears("READY=1")
        assert manager.hears(ALIVE)

        daemon.send(signal.SIGTERM)

        assert manager.hears("STOPPING=1")
        assert daemon.ended() == 0


def test_a_loop_that_stands_still_is_silent_and_one_that_goes_on_is_not(
    installation: Installation, postgresql: PostgreSQL
) -> None:
    address = f"@{installation.home}/notify"
    with managed(installation, address) as (manager, daemon):
        manager.hears("READY=1")

        daemon.freeze()
        manager.hears_nothing()
        daemon.thaw()
        manager.hears(ALIVE)

        with standing_still(installation, postgresql):
            manager.hears_nothing()
        manager.hears(ALIVE)


def test_a_database_that_is_away_is_shown_and_costs_no_start(
    installation: Installation, postgresql: PostgreSQL
) -> None:
    with managed(installation, f"@{installation.home}/notify") as (manager, daemon):
        manager.hears("READY=1")

        postgresql.stop()
        assert manager.hears("STATUS=database") == "STATUS=database unavailable"
        assert manager.hears(ALIVE)
        postgresql.start()

        assert manager.hears("STATUS=last tick")
        assert daemon.is_alive
