"""The second lane: PostgreSQL, where actors also stop between two statements of a transaction."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy import event

from models.store.schema import migrate
from runtime.postgresql import IDLE_TRANSACTION_TIMEOUT_S, make_postgresql_engine
from tests.chaos.clock import SEARCH_PATH
from tests.legal_moves import hold_to_legal_moves
from tests.servers import PostgreSQL, running_cluster
from tests.worlds.loom import Actor, Loom
from tests.worlds.stage import Database, Faults
from tests.worlds.watch import follow_moves

TEMPLATE, NAME = "world_template", "world"
# Two actors that are in one another's way would wait for ever in one thread.
LOCK_WAIT = "20ms"
# How often an actor stops before a statement that is not the first of its transaction.
STOPS = 0.3
# Statements wait for no clock, so a sequence shows it: it belongs to no transaction.
CLOCK = (
    "CREATE SCHEMA storm",
    "CREATE SEQUENCE storm.world_clock",
    *(
        f"CREATE FUNCTION storm.{name}() RETURNS timestamptz LANGUAGE sql {kind} AS "
        "'SELECT pg_catalog.to_timestamp(last_value / 1000000.0) FROM storm.world_clock'"
        for name, kind in (("statement_timestamp", "STABLE"), ("clock_timestamp", "VOLATILE"))
    ),
)


@contextmanager
def cluster() -> Iterator[PostgreSQL]:
    """Run a PostgreSQL with a migrated database to copy."""
    with running_cluster() as server:
        server.execute(f"CREATE DATABASE {TEMPLATE}")
        _fill(sa.create_engine(_driven(server.url(TEMPLATE))))
        server.execute(f"ALTER DATABASE {TEMPLATE} SET search_path = {SEARCH_PATH}")
        yield server


def _driven(url: str) -> sa.URL:
    return sa.make_url(url).set(drivername="postgresql+psycopg")


def _fill(engine: sa.Engine) -> None:
    migrate(engine)
    hold_to_legal_moves(engine)
    with engine.begin() as connection:
        follow_moves(connection)
        for statement in CLOCK:
            connection.exec_driver_sql(statement)
    engine.dispose()


class PostgreSQLDatabase(Database):
    """A database of a cluster, with a session for each actor that is in a transaction."""

    store = "postgresql"
    # What the names of a running module are replaced by, besides those of every world.
    PLACES: Mapping[str, Any] = {"runtime.database.LOCKED_ROWS_WAIT": LOCK_WAIT}

    def __init__(self, loom: Loom, faults: Faults, server: PostgreSQL) -> None:
        self.loom, self.faults, self.server = loom, faults, server
        self.shift_s = 0.0
        self._shown_us = 0
        # The connections on which each actor is in a transaction.
        self._held: defaultdict[Actor, list[sa.Connection]] = defaultdict(list)
        server.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")
        server.copy(TEMPLATE, NAME)
        server.execute(f"ALTER DATABASE {NAME} SET search_path = {SEARCH_PATH}")
        self._monitor = psycopg.connect(server.url(NAME), autocommit=True)
        self._monitor.execute("SET timezone = 'UTC'")
        self.engine = make_postgresql_engine(_driven(server.url(NAME)), 50)
        event.listen(self.engine, "connect", _wait_briefly)
        event.listen(self.engine, "begin", self._before)
        event.listen(self.engine, "before_cursor_execute", self._before_statement)
        event.listen(self.engine, "commit", self._at_commit)
        event.listen(self.engine, "rollback", self._released)
        loom.at_death = self.lose_session
        self._show_clock()

    def rows(self, statement: str) -> list[Any]:
        """Read without a step."""
        return self._monitor.execute(statement.encode()).fetchall()

    def has_changed(self) -> bool:
        """Return whether something may have been written."""
        return True

    def lose_session(self, actor: Actor, frozen_s: float = float("inf")) -> None:
        """End the transaction of an actor that died, or froze for longer than the server waits."""
        if frozen_s <= IDLE_TRANSACTION_TIMEOUT_S:
            return
        for one in self._held.pop(actor, ()):
            raw: Any = one.connection.driver_connection
            raw.close()

    def copy(self) -> None:
        """Make no back-up: those are met in the first lane."""

    def close(self) -> None:
        self._monitor.close()
        self.engine.dispose()

    def _before(self, connection: sa.Connection) -> None:
        super()._before(connection)
        if self.loom.actor is not None:
            self._held[self.loom.actor].append(connection)
        self._show_clock()

    def _before_statement(self, connection: sa.Connection, *_: object) -> None:
        actor = self.loom.actor
        is_within = actor is not None and connection in self._held[actor]
        if actor is not None and is_within and self.loom.random.random() < STOPS:
            self.loom.pause(f"{actor.step.removesuffix(WITHIN)}{WITHIN}")
        self._show_clock()

    def _commit_now(self, connection: sa.Connection) -> None:
        raw: Any = connection.connection.driver_connection
        raw.commit()

    def _at_commit(self, connection: sa.Connection) -> None:
        self._released(connection)
        super()._at_commit(connection)

    def _released(self, connection: sa.Connection) -> None:
        held = [] if self.loom.actor is None else self._held[self.loom.actor]
        if connection in held:
            held.remove(connection)

    def _show_clock(self) -> None:
        now_us = round(self.now().timestamp() * 1_000_000)
        if now_us != self._shown_us:
            self._shown_us = now_us
            self._monitor.execute("SELECT setval('storm.world_clock', %s)", [now_us])


# What a step is called that begins within a transaction.
WITHIN = ", within"


def _wait_briefly(connection: Any, _record: object) -> None:
    connection.autocommit = True
    connection.execute(f"SET lock_timeout = '{LOCK_WAIT}'")
    connection.autocommit = False
