"""The database's clock as a test sets it, instant by instant: for deciding a year in seconds."""

import sqlite3
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import event

from tests.chaos.shifted import replace_clock

# Before pg_catalog in the search path: our statements find these first.
SHADOWS = """
CREATE SCHEMA virtual;
CREATE TABLE virtual.clock (now timestamptz NOT NULL);
INSERT INTO virtual.clock VALUES ('1970-01-01T00:00:00Z');
CREATE FUNCTION virtual.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
AS 'SELECT now FROM virtual.clock';
CREATE FUNCTION virtual.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
AS 'SELECT now FROM virtual.clock';
"""


class VirtualClock:
    """The clock of one engine's database; it stands still until it is set."""

    def __init__(self, engine: sa.Engine, now: datetime) -> None:
        self.engine = engine
        self.now = now
        if engine.dialect.name == "postgresql":
            self._shadow()
        else:
            event.listen(engine, "connect", self._take_over)
        engine.dispose()
        self.set(now)

    def set(self, now: datetime) -> None:
        """Let the database believe that it is `now`."""
        self.now = now
        if self.engine.dialect.name == "postgresql":
            with self.engine.begin() as connection:
                connection.execute(sa.text("UPDATE virtual.clock SET now = :now"), {"now": now})

    def _shadow(self) -> None:
        with self.engine.begin() as connection:
            connection.exec_driver_sql(SHADOWS)
            connection.exec_driver_sql(
                f"ALTER DATABASE {self.engine.url.database}"
                " SET search_path = virtual, pg_catalog, public"
            )

    def _take_over(self, connection: sqlite3.Connection, _record: object) -> None:
        replace_clock(connection, lambda: self.now)
