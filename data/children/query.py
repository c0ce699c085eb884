"""What runs the query of an SQL source, in a child process: it loads no settings."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from data.bad_rows import BadRows
from data.failures import SourceFailed, Stopped, first_line
from data.fetch.rows import Bounds, write_rows
from runtime.egress.addresses import without_addresses
from runtime.postgresql import only_read
from tasks.bounded.child import Call

CONNECT_S = 10
# libpq without memory for a row returns what it has, and an error as a second result.
_NO_MEMORY = ("out of memory", "received 2 results from command")
# Of PostgreSQL, for a statement that reached its time limit.
_CANCELLED = "57014"
ROWS_AT_ONCE = 1_000


def answer(call: Call) -> Mapping[str, Any]:
    """Write the rows of the call's query; called in the child."""
    given = call.arguments
    name, timeout_s = given["name"], given["timeout_s"]
    engine = _engine(name, given["url"], timeout_s)
    bounds = Bounds(f"connection {name}", given["max_bytes"], call.watch)
    try:
        return asdict(_written(engine, given["sql"], name, Path(given["target"]), bounds))
    except sa.exc.SQLAlchemyError as error:
        if call.watch.is_stopped:
            raise Stopped from None
        raise _failed(name, error, timeout_s) from None
    finally:
        engine.dispose()


def _written(engine: sa.Engine, sql: str, name: str, target: Path, bounds: Bounds) -> BadRows:
    with engine.connect() as connection:
        driver = connection.connection.driver_connection
        rows = closing(_rows(connection, sql, name))
        with bounds.watch.interrupted_by(_cancel_of(driver)), rows as found:
            return write_rows(found, target, bounds)


def _engine(name: str, written: str, timeout_s: float) -> sa.Engine:
    try:
        url = sa.make_url(written)
        options = _options(url, timeout_s)
        engine = sa.create_engine(url, poolclass=sa.NullPool, connect_args=options)
    except (sa.exc.ArgumentError, ImportError, ValueError) as error:
        # The text of a URL error may quote the URL.
        kind = type(error).__name__
        text = f": {error}" if isinstance(error, ImportError) else ""
        raise SourceFailed(
            f"connection {name} cannot be used: {kind}{text}", permanent=True
        ) from None
    if _is_psycopg(url):
        only_read(engine, f"statement_timeout = {int(timeout_s * 1e3)}")
    if url.get_backend_name() == "sqlite":
        sa.event.listen(engine, "connect", _read_only_sqlite)
    if url.get_backend_name() in ("mysql", "mariadb"):
        sa.event.listen(engine, "connect", _read_only_mysql)
    return engine


def _is_psycopg(url: sa.URL) -> bool:
    return url.drivername == "postgresql+psycopg"


def _options(url: sa.URL, timeout_s: float) -> dict[str, Any]:
    backend = url.get_backend_name()
    if _is_psycopg(url):
        return {"connect_timeout": CONNECT_S}
    if backend == "postgresql":
        # Other drivers send the query as it is, which may begin a transaction of its own.
        session = f"-c default_transaction_read_only=on -c statement_timeout={int(timeout_s * 1e3)}"
        return {"connect_timeout": CONNECT_S, "options": session}
    if backend == "sqlite":
        # One thread runs the query, another interrupts it.
        return {"check_same_thread": False, "timeout": CONNECT_S}
    return {}


def _read_only_sqlite(connection: Any, _record: object) -> None:
    connection.execute("PRAGMA query_only = ON")


def _read_only_mysql(connection: Any, _record: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION READ ONLY")


def _cancel_of(driver: Any) -> Callable[[], object]:
    """Return the driver's function that ends a query from another thread."""
    for name in ("cancel_safe", "cancel", "interrupt"):
        found: Callable[[], object] | None = getattr(driver, name, None)
        if callable(found):
            return found
    return lambda: None


def _rows(connection: sa.Connection, sql: str, name: str) -> Generator[dict[str, Any], None, None]:
    # Without parameters, a driver takes percent signs and colons literally.
    options = {"stream_results": True, "max_row_buffer": ROWS_AT_ONCE, "no_parameters": True}
    with connection.execution_options(**options).exec_driver_sql(sql) as result:
        columns = _columns(result, name)
        for rows in result.partitions(ROWS_AT_ONCE):
            for row in rows:
                yield dict(zip(columns, row, strict=True))


def _columns(result: sa.CursorResult[Any], name: str) -> Sequence[str]:
    if not result.returns_rows:
        raise SourceFailed(f"connection {name}: the statement returns no rows", permanent=True)
    columns = list(result.keys())
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise SourceFailed(
            f'connection {name}: the query has two columns "{twice[0]}"; rename one with AS',
            permanent=True,
        )
    return columns


def _failed(name: str, error: sa.exc.SQLAlchemyError, timeout_s: float) -> SourceFailed:
    cause = getattr(error, "orig", None) or error
    if getattr(cause, "sqlstate", None) == _CANCELLED:
        late = f"takes longer than SCHED_FETCH_TIMEOUT_S={timeout_s:g}"
        return SourceFailed(f"connection {name} {late}")
    text = first_line(cause)
    if any(sign in text for sign in _NO_MEMORY):
        raise MemoryError
    if isinstance(error, sa.exc.OperationalError):
        text = without_addresses(text)
    is_permanent = isinstance(error, sa.exc.ProgrammingError)
    return SourceFailed(f"connection {name}: {text}", permanent=is_permanent)
