"""Engines and transactions for PostgreSQL and SQLite.

On SQLite a writer takes the lock at its start (`BEGIN IMMEDIATE`): a transaction that reads first
and writes later would lose updates. Readers use a plain `BEGIN` and see one snapshot.
"""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from threading import Event
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

from runtime.config import Settings, load_settings
from runtime.folders import make_private
from runtime.postgresql import is_pooled, make_postgresql_engine

BUSY_TIMEOUT_S = 10
# Above the longest pause between two tries of SQLite's busy handler.
LONGEST_ASK_S = 0.12
CONNECTIONS = 5
READ_ONLY = {"read_only": True}
# Errors of a database that is unavailable: not a row's fault, and a later attempt may succeed.
# InternalError: PostgreSQL ended the transaction of a frozen process.
DATABASE_AWAY = (
    sa.exc.OperationalError,
    sa.exc.InterfaceError,
    sa.exc.InternalError,
    sa.exc.TimeoutError,
)
# PostgreSQL ended a transaction because it and another one waited for each other.
DEADLOCK = "40P01"
# Less than PostgreSQL waits (1 s) before it looks for a deadlock: the other transaction goes on.
LOCKED_ROWS_WAIT = "900ms"
LOCK_NOT_AVAILABLE = "55P03"
# PostgreSQL's classes of errors: a right, a table or a column is missing; there is no such schema.
REFUSALS = ("42", "3F")


def make_engine(settings: Settings, connections: int = CONNECTIONS) -> sa.Engine:
    """Return an engine for the settings' database, not connected yet.

    It keeps up to `connections` to PostgreSQL open; more are closed after each use.
    """
    url = settings.effective_database_url
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(url)
    return make_postgresql_engine(url, connections, **_of_both())


@lru_cache(maxsize=1)
def default_engine() -> sa.Engine:
    """Return this process's engine, made from `load_settings()` at the first call."""
    return make_engine(load_settings())


def is_made(engine: sa.Engine) -> bool:
    """Return whether the database may hold something: connecting creates an SQLite file."""
    if engine.url.get_backend_name() != "sqlite":
        return True
    name = str(engine.url.database)
    file = Path(name)
    return name.startswith("file:") or (file.is_file() and file.stat().st_size > 0)


def written_json(value: Any) -> str:
    """Return a value as the JSON that is stored, without spaces: each operation has some."""
    return json.dumps(value, separators=(",", ":"))


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
# An escape of JSON: a pair of surrogates, a lone one (group 1), or any other.
_PAIR = r"u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w"
_ESCAPE = re.compile(rf"\\(?:{_PAIR}|(u[dD][89a-fA-F]\w\w)|.)", re.DOTALL)


def read_stored(text: str | bytes) -> Any:
    """Return the value of a stored JSON text; None for a text that is not JSON.

    Halves of characters (lone surrogates) are shown as their escapes: no answer can hold them.
    """
    try:
        text = text.decode() if isinstance(text, bytes) else text
        return json.loads(_whole_characters(text) if _SURROGATE.search(text) else text)
    except (ValueError, RecursionError):
        return None


def _whole_characters(text: str) -> str:
    return _ESCAPE.sub(lambda one: one[0] if one[1] is None else "\\" + one[0], text)


def reason_of(error: BaseException) -> str:
    """Return the driver's error in one line, or else the error itself."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def sqlstate_of(error: BaseException) -> str | None:
    """Return PostgreSQL's code of an error; None if there is none."""
    found: str | None = getattr(getattr(error, "orig", None), "sqlstate", None)
    return found


def is_refusal(error: BaseException) -> bool:
    """Return whether PostgreSQL refuses what it is asked, such as for a missing right."""
    return (sqlstate_of(error) or "").startswith(REFUSALS)


def not_usable(error: BaseException) -> str | None:
    """Return the text of an error of an unavailable or refusing database; None for any other."""
    if isinstance(error, DATABASE_AWAY):
        return f"database unavailable (SCHED_DATABASE_URL): {reason_of(error)}"
    if is_refusal(error):
        return f"the database refuses (SCHED_DATABASE_URL): {reason_of(error)}"
    return None


def is_of_no_row(error: BaseException) -> bool:
    """Return whether an error is not a row's fault: it would occur whatever is stored."""
    return isinstance(error, DATABASE_AWAY) or is_refusal(error)


@contextmanager
def reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a connection that writes nothing; each statement sees one snapshot."""
    with engine.connect().execution_options(**READ_ONLY) as connection, connection.begin():
        yield connection


@contextmanager
def glancing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a connection for statements that read a few rows each, without a transaction.

    PostgreSQL gets one round trip per statement instead of three; by a pooler, the time-outs need a
    transaction. To stream rows, use `reading`.
    """
    if engine.dialect.name != "postgresql":
        with reading(engine) as connection:
            yield connection
        return
    with engine.connect() as connection:
        if not is_pooled(connection):
            connection.execution_options(isolation_level="AUTOCOMMIT")
        yield connection


@contextmanager
def each_committed(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a connection each of whose statements stands for itself: it may write in one of them.

    PostgreSQL gets one round trip per statement, as with `glancing`; SQLite one transaction.
    """
    is_postgresql = engine.dialect.name == "postgresql"
    with glancing(engine) if is_postgresql else engine.begin() as connection:
        yield connection
        if is_postgresql and connection.in_transaction():
            # By a pooler.
            connection.commit()


@contextmanager
def one_snapshot(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a connection whose statements all see the same instant of the database.

    On PostgreSQL, `reading` gives each statement its own snapshot.
    """
    options: dict[str, Any] = dict(READ_ONLY)
    if engine.dialect.name == "postgresql":
        options["isolation_level"] = "REPEATABLE READ"
    with engine.connect().execution_options(**options) as connection, connection.begin():
        yield connection


@contextmanager
def unhurried(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a connection in a transaction that a server crash may lose, but never tear.

    For writes that can be repeated or lost, such as "message sent": PostgreSQL answers before its
    disk does. Any later ordinary commit makes the transaction durable too.
    """
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SET LOCAL synchronous_commit = off")
        yield connection


def wait_briefly(connection: sa.Connection) -> None:
    """Let this transaction wait for rows that another one keeps locked for less than a second.

    Then a statement fails, by `is_locked`. SQLite has no rows that are locked.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCKED_ROWS_WAIT}'")


def plan_each_time(engine: sa.Engine) -> None:
    """Let PostgreSQL plan each statement of new connections by the tables as they are then.

    A plan that it keeps for a prepared statement is of the moment when it was made, perhaps of a
    table that was still empty, and knows no values. With such plans, a tick with 10,000 due takes a
    tenth longer.
    """

    def set_it(connection: Any, _record: object) -> None:
        # A session by a pooler, which others use too, stays as it is.
        if connection.prepare_threshold is None:
            return
        connection.autocommit = True
        connection.execute("SET plan_cache_mode = force_custom_plan")
        connection.autocommit = False

    if engine.dialect.name == "postgresql":
        event.listen(engine, "connect", set_it)


def is_locked(error: BaseException) -> bool:
    """Return whether a statement failed because another transaction keeps rows locked."""
    return sqlstate_of(error) in {LOCK_NOT_AVAILABLE, DEADLOCK}


def _of_both() -> dict[str, Any]:
    """Return the options of an engine of either store."""
    return {
        "json_serializer": written_json,
        "json_deserializer": read_stored,
        # Documents hold the addresses of webhooks: the values of a statement are not for logs.
        "hide_parameters": True,
    }


def _sqlite_engine(url: sa.URL) -> sa.Engine:
    engine = sa.create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_S}, **_of_both())
    event.listen(engine, "do_connect", _make_folder)
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _make_folder(_dialect: object, _record: object, arguments: list[Any], _named: object) -> None:
    if not arguments[0].startswith("file:"):
        make_private(Path(arguments[0]).parent)


def _set_up_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def give_way(engine: sa.Engine) -> None:
    """Let others write between the batches of a long change.

    SQLite wakes no waiting process when a lock is free: it asks again within 0.1 s, and would find
    the lock taken by the next batch.
    """
    if engine.dialect.name == "sqlite":
        Event().wait(LONGEST_ASK_S)


def _begin_sqlite(connection: sa.Connection) -> None:
    is_reader = connection.get_execution_options().get("read_only", False)
    connection.exec_driver_sql("BEGIN" if is_reader else "BEGIN IMMEDIATE")
