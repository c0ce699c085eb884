"""What a daemon says to its service manager over `NOTIFY_SOCKET`, and who tells that it is gone."""

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email import message_from_bytes
from email.policy import default

import pytest

from tests.acceptance.installation import LEASE_S, Installation
from tests.acceptance.processes import SOON_S, Process, until
from tests.acceptance.standstill import standing_still
from tests.servers import PostgreSQL

# One store: PostgreSQL, which can hang.
pytestmark = pytest.mark.parametrize("store", ["postgresql"])

# The loop turns four times in a lease.
SILENCE_S = 2 * LEASE_S
ALIVE = "WATCHDOG=1"
TOLD = {"SCHED_ALERT_MAIL": "ops@example.com", "SCHED_ALERT_BROKEN_AFTER_S": "1"}


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
        while True:
            for one in self.next():
                if one.startswith(start):
                    return one

    def hears_nothing(self) -> None:
        """Pass over what was sent before; fail if more comes."""
        self.socket.setblocking(False)
        with suppress(BlockingIOError):
            while self.socket.recv(4096):
                pass
        with pytest.raises(TimeoutError):
            self.next(SILENCE_S)


@contextmanager
def managed(installation: Installation, address: str) -> Iterator[tuple[Manager, Process]]:
    manager = Manager(address)
    with manager.socket:
        yield manager, installation.daemon({"NOTIFY_SOCKET": address})


def test_it_is_ready_after_a_tick_and_says_that_it_stops(installation: Installation) -> None:
    """Here the address is a path; in the other tests it is abstract."""
    with managed(installation, f"{installation.home}/notify") as (manager, daemon):
        assert manager.hears("STATUS=").startswith("STATUS=last tick 20")
        assert manager.hears("READY=1")
        assert manager.hears(ALIVE)

        daemon.send(signal.SIGTERM)

        assert manager.hears("STOPPING=1")
        assert daemon.ended() == 0


def test_a_loop_that_stands_still_is_silent_and_one_that_goes_on_is_not(
    installation: Installation,
) -> None:
    with managed(installation, f"@{installation.home}/notify") as (manager, daemon):
        manager.hears("READY=1")

        daemon.freeze()
        manager.hears_nothing()
        daemon.thaw()
        manager.hears(ALIVE)

        with standing_still(installation):
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


def subjects(installation: Installation) -> list[str]:
    """Return the subjects of the mails to the admins, in order of their kinds."""
    files = (installation.home / "mail").glob("*.eml")
    mails = (message_from_bytes(file.read_bytes(), policy=default) for file in files)
    return sorted(str(mail["Subject"]) for mail in mails)


def told(installation: Installation, count: int) -> list[str]:
    until(lambda: len(subjects(installation)) == count, lambda: f"{subjects(installation)}")
    return subjects(installation)


@pytest.mark.parametrize("teller", ["web", "worker"])
def test_a_killed_daemon_and_its_return_are_told_once_by_a_process_that_is_left(
    installation: Installation, teller: str
) -> None:
    daemon = installation.daemon(TOLD)
    daemon.said("tick ")
    if teller == "web":
        installation.web(TOLD)
    else:
        installation.worker(is_awaited=True, concurrency=2, settings=TOLD)

    daemon.kill()
    (broken,) = told(installation, 1)
    installation.daemon(TOLD)
    both = told(installation, 2)

    assert broken.startswith("[minutebook] ALERT: no daemon ticks: the last tick was by ")
    assert both == [broken, broken.replace("ALERT", "RESOLVED")]
