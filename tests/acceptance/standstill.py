"""Who stands still and holds what others want, and a disk that is full for a while."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psutil
import sqlalchemy as sa

from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process, freeze_tree, thaw_tree, until
from tests.transactions import execute, fetched

# Below the size of SQLite's log file, above that of a process's own log.
MOST_BYTES = 32 * 1024
WRITTEN = ("installation", "operations", "attempts", "ticks")
FULL = """
CREATE FUNCTION disk_is_full() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
END $$
"""
# Makes the recording of the action "frozen" take a second or two.
SLOW = """
CREATE TRIGGER slow BEFORE INSERT ON operations WHEN NEW.triggerer LIKE '%frozen%'
BEGIN
  SELECT sum(n) FROM (
    WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted LIMIT 10000000)
    SELECT n FROM counted
  );
END
"""


def freeze_in_a_transaction(installation: Installation, daemon: Process) -> None:
    """Freeze a daemon that records what is `SLOW`, and so holds SQLite's only lock."""
    with sqlite3.connect(installation.home / "minutebook.db", timeout=0) as probe:
        probe.isolation_level = None
        # A transaction that is short is over when it is asked for again.
        held = 0

        def is_held() -> bool:
            nonlocal held
            try:
                probe.execute("BEGIN IMMEDIATE")
                probe.execute("ROLLBACK")
                held = 0
            except sqlite3.OperationalError:
                held += 1
            return held == 5

        until(is_held, "the daemon is in its transaction")
        daemon.freeze()
    probe.close()


@contextmanager
def standing_still(installation: Installation) -> Iterator[None]:
    """Let nobody write, as long as the block lasts: neither an answer nor an error."""
    if installation.store == "sqlite":
        locker = sqlite3.connect(installation.home / "minutebook.db", isolation_level=None)
        try:
            locker.execute("BEGIN EXCLUSIVE")
            yield
        finally:
            locker.close()
        return
    of_ours = fetched(installation.engine, sa.text("SELECT pg_backend_pid()")).scalar_one()
    server = psutil.Process(of_ours).ppid()
    try:
        freeze_tree(server)
        yield
    finally:
        thaw_tree(server)


@dataclass
class Disk:
    """What PostgreSQL answers when its disk is full; on SQLite a limit on the processes' files."""

    installation: Installation
    _limited: list[Process] = field(default_factory=list)

    def fill(self, *processes: Process) -> None:
        """Let these processes, and on PostgreSQL everybody, write nothing."""
        if self.installation.store == "postgresql":
            triggers = (
                f"CREATE TRIGGER full_{table} BEFORE INSERT OR UPDATE ON {table}"
                " EXECUTE FUNCTION disk_is_full()"
                for table in WRITTEN
            )
            execute(self.installation.engine, sa.text(";".join([FULL, *triggers])))
            return
        log = self.installation.home / "minutebook.db-wal"
        for number in range(100):
            if log.stat().st_size > MOST_BYTES:
                break
            self.installation.action(f"padding {number}")
        self._limited += processes
        self._limit(MOST_BYTES)

    def make_room(self) -> None:
        if self.installation.store == "postgresql":
            execute(self.installation.engine, sa.text("DROP FUNCTION disk_is_full CASCADE"))
        self._limit(psutil.RLIM_INFINITY)

    def _limit(self, most_bytes: int) -> None:
        for process in self._limited:
            for one in (psutil.Process(process.pid), *map(psutil.Process, process.children())):
                _, hard = one.rlimit(psutil.RLIMIT_FSIZE)
                one.rlimit(psutil.RLIMIT_FSIZE, (most_bytes, hard))
