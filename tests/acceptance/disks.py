"""A disk that is full, for those who write to the database, until there is room again."""

from dataclasses import dataclass, field

import psutil
import sqlalchemy as sa

from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process

# Below the size of SQLite's log file, above that of a process's own log.
MOST_BYTES = 32 * 1024
WRITTEN = ("installation", "operations", "attempts", "ticks")
FULL = """
CREATE FUNCTION disk_is_full() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
END $$
"""


@dataclass
class Disk:
    """What PostgreSQL answers when its disk is full; on SQLite a limit on the processes' files."""

    installation: Installation
    _limited: list[Process] = field(default_factory=list)

    def fill(self, *processes: Process) -> None:
        """Let these processes, and on PostgreSQL everybody, write nothing."""
        if self.installation.store == "postgresql":
            self._execute(FULL)
            for table in WRITTEN:
                each = f"BEFORE INSERT OR UPDATE ON {table} EXECUTE FUNCTION disk_is_full()"
                self._execute(f"CREATE TRIGGER full_{table} {each}")
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
            self._execute("DROP FUNCTION disk_is_full CASCADE")
        self._limit(psutil.RLIM_INFINITY)

    def _limit(self, most_bytes: int) -> None:
        for process in self._limited:
            for one in (psutil.Process(process.pid), *map(psutil.Process, process.children())):
                _, hard = one.rlimit(psutil.RLIMIT_FSIZE)
                one.rlimit(psutil.RLIMIT_FSIZE, (most_bytes, hard))

    def _execute(self, statement: str) -> None:
        with self.installation.engine.begin() as connection:
            connection.execute(sa.text(statement))
