"""Faults of a database."""

import signal
import sqlite3
from collections.abc import Callable

from tests.acceptance.installation import Installation
from tests.chaos.crew import freeze_tree
from tests.chaos.faults import Fault, Later
from tests.servers import PostgreSQL

# A crash of the server loses no commit, if the machine itself does not crash.
SURVIVES_A_CRASH = ("-c", "fsync=off", "-c", "full_page_writes=off")


class DatabaseFaults:
    def __init__(self, installation: Installation, server: PostgreSQL | None, later: Later) -> None:
        self.installation, self.server, self.later = installation, server, later

    def set_up(self) -> None:
        """Make the server keep its commits through its own crash."""
        if self.server is not None:
            self.server.stop()
            self.server.start(SURVIVES_A_CRASH)

    def acts(self) -> dict[str, Callable[[Fault], None]]:
        server = self.server
        if server is None:
            return {"lock database": self._lock}
        return {
            "freeze database": lambda fault: self._freeze(fault, server),
            "restart database": lambda fault: self._stop(fault, server, signal.SIGINT),
            "crash database": lambda fault: self._stop(fault, server, signal.SIGQUIT),
        }

    def _lock(self, fault: Fault) -> None:
        path = self.installation.home / "minutebook.db"
        # Another thread repairs.
        locker = sqlite3.connect(path, timeout=2, isolation_level=None, check_same_thread=False)
        try:
            locker.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            locker.close()
            raise
        self.later(fault, locker.close)

    def _freeze(self, fault: Fault, server: PostgreSQL) -> None:
        assert server.process is not None
        freeze_tree(server.process.pid, fault, self.later)

    def _stop(self, fault: Fault, server: PostgreSQL, how: signal.Signals) -> None:
        self.later(fault, lambda: server.start(SURVIVES_A_CRASH))
        server.stop(how)
