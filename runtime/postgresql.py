"""Connections to PostgreSQL, directly or through a pooler: how they are made, set up and kept."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event

from runtime.clock import monotonic

if TYPE_CHECKING:
    import psycopg
    from sqlalchemy.pool import ConnectionPoolEntry

STATEMENT_TIMEOUT_S = 60
# A frozen process loses its locks after this long; see docs/explanation/faults.md.
IDLE_TRANSACTION_TIMEOUT_S = 30
CONNECT_TIMEOUT_S = 5
PING_AFTER_IDLE_S = 5.0
# PostgreSQL's code of a write in a session that can only read.
READ_ONLY_SESSION = "25006"
# Values for what a URL does not set itself.
ARGUMENTS = {
    "connect_timeout": CONNECT_TIMEOUT_S,
    # By default, the encoding of the database.
    "client_encoding": "utf8",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    # A proxy may lead to a standby while the primary is unavailable, and would leave us there.
    "target_session_attrs": "primary",
}
# Not by the start-up parameter `options`: PgBouncer refuses it, and the URL may have its own.
# PgBouncer keeps these two apart for each of its clients, however it pools.
OF_CLIENT = (
    "timezone = 'UTC'",
    # Of all styles, the driver reads this one; a database may have another by default.
    "datestyle = 'ISO'",
)
OF_SESSION = (
    f"statement_timeout = '{STATEMENT_TIMEOUT_S}s'",
    f"idle_in_transaction_session_timeout = '{IDLE_TRANSACTION_TIMEOUT_S}s'",
    # A lock is waited for as long as a statement may take.
    "lock_timeout = 0",
    # Ticks read by key. PostgreSQL's default, made for rotating disks, reads a whole table of
    # 100,000 rows for a hundredth of it.
    "random_page_cost = 1.1",
    # Compiling a statement for many given rows takes longer than the statement.
    "jit = off",
)


def make_postgresql_engine(url: sa.URL, connections: int, **options: Any) -> sa.Engine:
    """Return an engine that keeps up to `connections` open; more are closed after each use."""
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    engine = sa.create_engine(
        url,
        connect_args={name: one for name, one in ARGUMENTS.items() if name not in url.query},
        pool_size=connections,
        pool_recycle=1800,
        # Locked rows are read as they are now. A database may have another level by default.
        isolation_level="READ COMMITTED",
        **options,
    )
    event.listen(engine, "do_connect", _connect)
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _set_up_if_pooled)
    event.listen(engine, "checkin", _note_use)
    event.listen(engine, "checkout", _ping_if_idle)
    event.listen(engine, "handle_error", _discard_what_cannot_write)
    return engine


def only_read(engine: sa.Engine, *settings: str) -> None:
    """Let each transaction by psycopg only read, with settings such as `timezone = 'UTC'`.

    A session by a pooler may be another client's next.
    """

    def begin(connection: sa.Connection) -> None:
        _execute(connection, "SET TRANSACTION READ ONLY", *_set_all(settings, "SET LOCAL"))

    event.listen(engine, "begin", begin)


def is_pooled(connection: sa.Connection) -> bool:
    """Return whether a pooler in between may lend the session to other clients."""
    driver: Any = connection.connection.driver_connection
    return driver.prepare_threshold is None


def _set_up_if_pooled(connection: sa.Connection) -> None:
    """Set for this transaction what another client of the pooler must not inherit."""
    if is_pooled(connection):
        _execute(connection, *_set_all(OF_SESSION, "SET LOCAL"))


def _execute(connection: sa.Connection, *statements: str) -> None:
    # Without a cursor of the server, whatever the connection uses for its rows.
    plain = {"stream_results": False}
    connection.exec_driver_sql("; ".join(statements), execution_options=plain)


def _set_all(settings: Sequence[str], how: str = "SET") -> list[str]:
    return [f"{how} {one}" for one in settings]


def _connect(
    _dialect: object, _record: object, arguments: list[Any], named: dict[str, Any]
) -> "psycopg.Connection[Any]":
    # Loaded with the driver, which a process without a database server does not need.
    from runtime.answers import AnsweringConnection

    return AnsweringConnection.connect(*arguments, **named)


def _set_up(connection: "psycopg.Connection[Any]", _record: object) -> None:
    # In a transaction, a rollback would undo it.
    connection.autocommit = True
    (pid,) = connection.execute("SELECT pg_backend_pid()").fetchone() or (None,)
    settings: Sequence[str] = OF_CLIENT + OF_SESSION
    if pid != connection.info.backend_pid:
        # A pooler may lend the session to others, and a statement prepared here is not there, or
        # is another one.
        connection.prepare_threshold = None
        settings = OF_CLIENT
    connection.execute("; ".join(_set_all(settings)))
    connection.autocommit = False


def _note_use(_connection: object, record: "ConnectionPoolEntry") -> None:
    record.info["used_at"] = monotonic()


def _ping_if_idle(
    connection: "psycopg.Connection[Any]", record: "ConnectionPoolEntry", _proxy: object
) -> None:
    """Replace a connection that died while idle, or that can only read.

    SQLAlchemy's ping before each use costs a worker a tenth of its time, and a connection in use
    may die at any moment anyway.
    """
    used_at = record.info.get("used_at")
    if used_at is None or monotonic() - used_at < PING_AFTER_IDLE_S:
        return
    try:
        (only_reads,) = connection.execute("SHOW transaction_read_only").fetchone() or ("on",)
        connection.rollback()
    except Exception as error:  # whatever a dead connection raises
        raise sa.exc.DisconnectionError(str(error)) from error
    if only_reads == "on":
        raise sa.exc.DisconnectionError("the session can only read")


def _discard_what_cannot_write(context: sa.engine.ExceptionContext) -> None:
    """Treat a session that can only read as lost, with all that were opened before.

    It was opened while the database was read-only, or leads to a standby, and stays so.
    """
    if getattr(context.original_exception, "sqlstate", None) == READ_ONLY_SESSION:
        context.is_disconnect = True
