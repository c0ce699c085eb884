"""The database's clock, set by a test for all processes of an installation."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import event

from tests.acceptance.installation import TICK_S, Installation
from tests.acceptance.processes import until
from tests.acceptance.shifted_clock import sitecustomize
from tests.ticks import MINUTE

# Before pg_catalog in the search path: our statements and the trigger find these first.
SHADOWS = """
CREATE SCHEMA shifted;
CREATE TABLE shifted.clock (shift interval NOT NULL);
INSERT INTO shifted.clock VALUES ('0');
CREATE FUNCTION shifted.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
AS 'SELECT pg_catalog.statement_timestamp() + shift FROM shifted.clock';
CREATE FUNCTION shifted.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
AS 'SELECT pg_catalog.clock_timestamp() + shift FROM shifted.clock';
"""


@dataclass
class Clock:
    """A clock that is right until it is set; to be made before any process is started."""

    installation: Installation

    def __post_init__(self) -> None:
        if self.installation.store == "postgresql":
            self._shadow()
        else:
            self._file = self.installation.file("clock_shift")
            self._file.write_text("0")
            self._take_over()

    def set_to(self, shift: timedelta) -> None:
        """Let it go that much before the right one, or behind it."""
        if self.installation.store == "postgresql":
            with self.installation.engine.begin() as connection:
                connection.execute(sa.text("UPDATE shifted.clock SET shift = :by"), {"by": shift})
            return
        fresh = self._file.with_suffix(".part")
        fresh.write_text(str(shift.total_seconds()))
        fresh.rename(self._file)

    def _shadow(self) -> None:
        engine = self.installation.engine
        with engine.begin() as connection:
            connection.exec_driver_sql(SHADOWS)
            path = "shifted, pg_catalog, public"
            connection.exec_driver_sql(
                f"ALTER DATABASE {engine.url.database} SET search_path = {path}"
            )
        engine.dispose()

    def _take_over(self) -> None:
        processes = self.installation.processes
        folder = str(Path(sitecustomize.__file__).parent)
        processes.environment = {
            **processes.environment,
            "PYTHONPATH": f"{folder}:{processes.environment['PYTHONPATH']}",
            sitecustomize.VARIABLE: str(self._file),
        }

        def shift(connection: Any, _record: object) -> None:
            sitecustomize.shift_clock(connection, self._file)

        event.listen(self.installation.engine, "connect", shift)
        self.installation.engine.dispose()


def set_clock(installation: Installation, clock: Clock, shift: timedelta) -> datetime:
    """Set the clock; return the first tick's `now` by the clock as it then is."""
    seen = len(installation.ticks())
    clock.set_to(shift)
    at = installation.now()
    until(
        lambda: any(abs(tick["now"] - at) < MINUTE for tick in installation.ticks()[seen:]),
        f"a tick at {at}",
    )
    return at


def right_after_a_heartbeat(installation: Installation, id: UUID, at_least_s: float) -> float:
    """Wait for a heartbeat so long before a tick; return how many seconds are left until it."""
    left_s: list[float] = []

    def has_beaten() -> bool:
        now, last = installation.now(), installation.row(id)["heartbeat_at"]
        left_s[:] = [TICK_S - (now.second + now.microsecond / 1e6) % TICK_S]
        return last is not None and (now - last).total_seconds() < 0.2 and left_s[0] > at_least_s

    until(has_beaten, f"a heartbeat {at_least_s} s before a tick")
    return left_s[0]
