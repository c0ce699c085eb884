"""The database's clock of a storm: settable, with a journal of its shifts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from random import Random

import sqlalchemy as sa

from runtime.clock import utc_now
from tests.acceptance.installation import Installation
from tests.acceptance.processes import ROOT, Process, python
from tests.chaos.facts import Journal
from tests.chaos.faults import Fault
from tests.chaos.shifted import shift_connection

# Functions here win over those of pg_catalog, which the search path names later.
POSTGRESQL = (
    "CREATE SCHEMA storm",
    "CREATE TABLE storm.clock (shift_s double precision NOT NULL)",
    "INSERT INTO storm.clock VALUES (0)",
    *(
        f"CREATE FUNCTION storm.{name}() RETURNS timestamptz LANGUAGE sql {kind} AS "
        f"'SELECT pg_catalog.{name}() + make_interval(secs => (SELECT shift_s FROM storm.clock))'"
        for name, kind in (("statement_timestamp", "STABLE"), ("clock_timestamp", "VOLATILE"))
    ),
)
SEARCH_PATH = "public, storm, pg_catalog"
MINUTE_S = 60.0
# An edit after a jump must not lie in the stretch that was shown twice.
PASSED_S = 5.0


class Clock:
    """The clock of all decisions of an installation."""

    def __init__(self, installation: Installation, journal: Journal) -> None:
        self.installation, self.journal = installation, journal
        self.shift_s = 0.0
        self._shown_from = utc_now().timestamp()
        # The furthest possible shift, and the furthest decided instant.
        self._most_s = 0.0
        self._decided_s = 0.0
        self._ahead: Process | None = None

    def set_up(self) -> None:
        """Replace the clock, before the installation's first connection."""
        if self.installation.store == "sqlite":
            self._write_file()
            sa.event.listen(
                self.installation.engine,
                "connect",
                lambda connection, _: shift_connection(connection, file_of(self.installation.home)),
            )
            return
        engine = self.installation.engine
        with engine.begin() as connection:
            for statement in POSTGRESQL:
                connection.exec_driver_sql(statement)
            name = engine.url.database
            connection.exec_driver_sql(f"ALTER DATABASE {name} SET search_path = {SEARCH_PATH}")
        engine.dispose()

    @contextmanager
    def ahead(self, seconds: float) -> Iterator[None]:
        """Run the block by a clock that is ahead; no decision is made, so none is made twice."""
        self.shift_s = seconds
        self._write()
        yield
        self.shift_s = 0.0
        self._write()

    def acts(self) -> dict[str, Callable[[Fault], None]]:
        return {
            "set clock forward": self._forward,
            "set clock back": self._back,
            "tick ahead": self._tick_ahead,
        }

    def end(self) -> None:
        """Move the clock past every instant ever shown or decided: no row waits for one."""
        if self._ahead is not None and self._ahead.is_alive:
            self._ahead.kill()
        ahead_s = self._decided_s - utc_now().timestamp()
        self._set(max(self._most_s, ahead_s) + PASSED_S)

    def close(self) -> None:
        """Record the last stretch."""
        self._note_stretch(utc_now().timestamp())

    def _forward(self, fault: Fault) -> None:
        self._move(Random(fault.number).uniform(20.0, 12 * MINUTE_S))

    def _back(self, fault: Fault) -> None:
        """Move the clock back: a little, unnoticed, or far, so that time is decided again."""
        random = Random(fault.number)
        longest = random.choice((10.0, 4 * MINUTE_S, 4 * MINUTE_S, 12 * MINUTE_S))
        self._move(-random.uniform(1.0, longest))

    def _tick_ahead(self, fault: Fault) -> None:
        """Make one tick in the future, like `--at`."""
        if self._is_ticking_ahead():
            return
        # Mostly so near that the next ticks wait for it: every occurrence stays certain.
        random = Random(fault.number)
        longest = random.choice((4 * MINUTE_S, 4 * MINUTE_S, 4 * MINUTE_S, 10 * MINUTE_S))
        seconds = random.uniform(1.0, longest)
        since = utc_now().timestamp() + self.shift_s
        at = since + seconds
        self.journal.note("ahead", since=since, at=at)
        self._decided_s = max(self._decided_s, at)
        command = python(str(ROOT / "scheduler_server.py"), "--once", "--at", _instant(at))
        self._ahead = self.installation.processes.start("ahead", command)

    def _move(self, seconds: float) -> None:
        # A tick in the future after the jump would belong to another time.
        if not self._is_ticking_ahead():
            self._set(self.shift_s + seconds)

    def _is_ticking_ahead(self) -> bool:
        return self._ahead is not None and self._ahead.is_alive

    def _set(self, shift_s: float) -> None:
        began = utc_now().timestamp()
        self._most_s = max(self._most_s, shift_s)
        before_s, self.shift_s = self.shift_s, shift_s
        try:
            self._write()
        except sa.exc.SQLAlchemyError:
            # The set may have failed or not: both shifts are recorded from here on.
            self.journal.note("clock", since=began, until=None, shift_s=shift_s)
            self.shift_s = before_s
            raise
        self._note_stretch(utc_now().timestamp(), before_s)
        self._shown_from = began

    def _note_stretch(self, until: float, shift_s: float | None = None) -> None:
        shown = self.shift_s if shift_s is None else shift_s
        self.journal.note("clock", since=self._shown_from, until=until, shift_s=shown)

    def _write(self) -> None:
        if self.installation.store == "sqlite":
            self._write_file()
            return
        with self.installation.engine.begin() as connection:
            connection.execute(
                sa.text("UPDATE storm.clock SET shift_s = :shift_s"), {"shift_s": self.shift_s}
            )

    def _write_file(self) -> None:
        file = file_of(self.installation.home)
        fresh = file.with_suffix(".new")
        fresh.write_text(repr(self.shift_s))
        fresh.replace(file)


def file_of(home: Path) -> Path:
    return home / "storm.clock"


def _instant(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp, utc_now().tzinfo).isoformat()
