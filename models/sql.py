"""Differences of PostgreSQL and SQLite in statements: the clock, conditions, inserts, upserts."""

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from importlib import import_module
from typing import Any, Protocol, TypeVar
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from models.column_types import UTCDateTime

T = TypeVar("T")
UUID_DIGITS = 32
_DIGITS = re.compile(r"[0-9a-f]{4}[0-9a-f-]{0,32}", re.IGNORECASE | re.ASCII)


class DatabaseNow(FunctionElement[datetime]):
    """The database's clock at the start of the statement plus a bound number of seconds.

    It is stable within a statement: an index on the compared column can be used.
    """

    inherit_cache = True
    type = UTCDateTime()


@compiles(DatabaseNow, "postgresql")
def _postgresql_now(element: DatabaseNow, compiler: SQLCompiler, **kw: Any) -> str:
    seconds = compiler.process(element.clauses, **kw)
    return f"(statement_timestamp() + make_interval(secs => {seconds}))"


@compiles(DatabaseNow, "sqlite")
def _sqlite_now(element: DatabaseNow, compiler: SQLCompiler, **kw: Any) -> str:
    seconds = compiler.process(element.clauses, **kw)
    # The driver stores the same form: milliseconds, padded to six digits.
    return f"(strftime('%Y-%m-%d %H:%M:%f000', 'now', ({seconds}) || ' seconds'))"


# Most statements ask for the clock itself: one value less to send, several times in each.
_NO_SECONDS = sa.literal_column("0.0", sa.Float)


def database_now(
    offset: timedelta | float | sa.ColumnElement[float] = 0.0,
) -> sa.ColumnElement[datetime]:
    """Return the SQL expression of the database's clock plus `offset` (seconds or a span)."""
    if isinstance(offset, timedelta):
        offset = offset.total_seconds()
    if isinstance(offset, sa.ColumnElement):
        return DatabaseNow(offset)
    return DatabaseNow(sa.literal(float(offset), sa.Float) if offset else _NO_SECONDS)


def read_clock(connection: sa.Connection) -> datetime:
    """Return the database's clock, aware UTC: the `now` of a tick, request or command."""
    now: datetime = connection.execute(sa.select(database_now())).scalar_one()
    return now


class Columns(Protocol):
    """Columns by name, of a table or an alias."""

    def __getitem__(self, key: str, /) -> sa.ColumnElement[Any]:
        """Return the column of that name."""


def dicts(connection: sa.Connection, query: sa.Executable) -> list[dict[str, Any]]:
    """Return the rows of a query as dictionaries, in a third of the time of its mappings."""
    found = connection.execute(query)
    keys = tuple(found.keys())
    return [dict(zip(keys, row, strict=True)) for row in found]


def parts_of(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the values in parts of at most `size`, as many as one statement takes."""
    return (values[start : start + size] for start in range(0, len(values), size))


def in_literals(column: sa.ColumnElement[str], values: Collection[str]) -> sa.ColumnElement[bool]:
    """Return `column IN (values)` with the values, plain words, as sorted literals.

    A partial index serves only a statement that contains its condition; SQLite and PostgreSQL's
    generic plans do not see it in parameters.
    """
    words: list[sa.ColumnElement[str]] = [sa.literal_column(f"'{one}'") for one in sorted(values)]
    return column == words[0] if len(words) == 1 else column.in_(words)


def in_unindexed(column: sa.ColumnElement[str], values: Collection[str]) -> sa.ColumnElement[bool]:
    """Return `column IN (values)` for rows that are found by another column, usually their key.

    No partial index serves it. By the statistics of a quiet moment such an index is empty, so
    PostgreSQL would read all that it holds by now instead of using the key.
    """
    return in_literals(column.concat(sa.literal_column("''")), values)


def unindexed(stands: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Return a condition for rows that another one finds: no index of its own serves it."""
    return sa.case((stands, 1), else_=0) == 1


def insert_ignoring(connection: sa.Connection, table: sa.Table) -> Any:
    """Return an insert into `table` that ignores rows with an existing key."""
    return insert_into(connection.dialect.name, table).on_conflict_do_nothing()


def insert_into(dialect: str, table: sa.Table) -> Any:
    """Return an insert into `table` that takes the ON CONFLICT of a dialect.

    SQLAlchemy's part for PostgreSQL is long to load: only an engine for PostgreSQL loads it.
    """
    return import_module(f"sqlalchemy.dialects.{dialect}").insert(table)


def follows(columns: Sequence[sa.Column[Any]], values: Sequence[Any]) -> sa.ColumnElement[bool]:
    """Return the condition that a row comes after these values, in the order of the columns.

    One comparison, so that an index finds the place.
    """
    place = (sa.literal(value, one.type) for one, value in zip(columns, values, strict=True))
    return sa.tuple_(*columns) > sa.tuple_(*place)


def begins_id(column: sa.ColumnElement[UUID], text: str) -> sa.ColumnElement[bool]:
    """Return the condition that an id begins with these digits, four or more; else false."""
    digits = text.replace("-", "")
    if not _DIGITS.fullmatch(text) or len(digits) > UUID_DIGITS:
        return sa.false()
    first, last = (UUID(digits.ljust(UUID_DIGITS, end)) for end in "0f")
    return column.between(first, last)


def in_many(
    connection: sa.Connection, column: sa.Column[Any], values: Collection[Any]
) -> sa.ColumnElement[bool]:
    """Return `column IN (values)` for many keys: PostgreSQL gets them as one array."""
    if connection.dialect.name == "postgresql":
        return column == sa.any_(sa.cast(list(values), sa.ARRAY(column.type)))
    return column.in_(values)


def upsert(
    connection: sa.Connection,
    table: sa.Table,
    rows: Sequence[dict[str, Any]],
    added: tuple[str, ...] = (),
    latest: tuple[str, ...] = (),
) -> None:
    """Insert `rows`, or overwrite the given columns of rows whose primary key exists.

    In columns named in `added`, the given value is added instead. Columns named in `latest` keep an
    instant that is later than the given one, unless it lies in the future: then the clock was set
    back.
    """
    if rows:
        changed = upserting(connection.dialect.name, table, tuple(rows[0]), added, latest)
        connection.execute(changed, rows)


def upsert_from(
    connection: sa.Connection, table: sa.Table, names: tuple[str, ...], source: sa.Select[Any]
) -> None:
    """Upsert the rows of a query, whose columns are `names`; see `upsert`."""
    changed = upserting(connection.dialect.name, table, names)
    connection.execute(changed.from_select(list(names), source))


def upsert_one(
    connection: sa.Connection,
    table: sa.Table,
    row: dict[str, Any],
    returning: tuple[sa.ColumnElement[Any], ...],
    added: tuple[str, ...] = (),
    latest: tuple[str, ...] = (),
) -> sa.Row[Any]:
    """Upsert one row, and return these columns as they are stored then; see `upsert`.

    A key that is not a column of the table is a parameter of `returning`.
    """
    names = tuple(name for name in row if name in table.c)
    how = (connection.dialect.name, table, names, added, latest)
    found: sa.Row[Any] = connection.execute(_upsert_returning(how, returning), row).one()
    return found


@lru_cache(maxsize=64)
def _upsert_returning(how: tuple[Any, ...], returning: tuple[sa.ColumnElement[Any], ...]) -> Any:
    return upserting(*how).returning(*returning)


@lru_cache(maxsize=64)
def upserting(
    dialect: str,
    table: sa.Table,
    names: tuple[str, ...],
    added: tuple[str, ...] = (),
    latest: tuple[str, ...] = (),
) -> Any:
    """Return the statement of `upsert` for rows with the columns `names`."""
    statement = insert_into(dialect, table)
    given = statement.excluded
    key = [column.name for column in table.primary_key]
    changed: dict[str, Any] = {name: given[name] for name in names if name not in key}
    changed |= {name: table.c[name] + given[name] for name in added}
    changed |= {name: _latest(table.c[name], given[name]) for name in latest if name in changed}
    return statement.on_conflict_do_update(index_elements=key, set_=changed)


def _latest(stored: sa.ColumnElement[Any], given: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    is_later = sa.or_(given.is_(None), stored.between(given, database_now()))
    return sa.case((is_later, stored), else_=given)
