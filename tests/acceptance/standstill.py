"""Who stands still and holds what others want: a daemon in its transaction, a whole database."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process, until
from tests.servers import PostgreSQL

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


def slow_down(installation: Installation) -> None:
    """Make the recording of the action "frozen" take that long, on SQLite."""
    with installation.engine.begin() as connection:
        connection.exec_driver_sql(SLOW)


def freeze_in_a_transaction(installation: Installation, daemon: Process) -> None:
    """Freeze a daemon that records what `slow_down` slows down, and so holds SQLite's only lock."""
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
def standing_still(installation: Installation, server: PostgreSQL | None) -> Iterator[None]:
    """Let nobody write, as long as the block lasts: neither an answer nor an error."""
    if installation.store == "sqlite":
        locker = sqlite3.connect(installation.home / "minutebook.db", isolation_level=None)
        try:
            locker.execute("BEGIN EXCLUSIVE")
            yield
        finally:
            locker.close()
        return
    assert server is not None
    assert server.process is not None
    main = psutil.Process(server.process.pid)
    tree = [main, *main.children(recursive=True)]
    try:
        for process in tree:
            process.suspend()
        yield
    finally:
        for process in tree:
            # One that was about to end has ended.
            with suppress(psutil.NoSuchProcess):
                process.resume()
