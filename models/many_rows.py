"""Statements for many given rows: the database gets them as one JSON text.

Row by row, SQLAlchemy and the driver would take several times as long as the database.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Protocol

import sqlalchemy as sa
from pydantic_core import to_json
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

from models.column_types import HyphenatedUuid, JsonText, StorableText, UTCDateTime
from models.sql import insert_into


def insert_all(
    connection: sa.Connection,
    table: sa.Table,
    rows: Sequence[dict[str, Any]],
    same: Mapping[str, sa.ColumnElement[Any]],
) -> list[Any]:
    """Insert rows with equal keys, plus the columns `same`; return the first keys of new rows.

    Rows with an existing key are ignored.
    """
    key = next(iter(table.primary_key))
    if not _is_postgresql(connection) and _is_long(table, rows[0]):
        once = {name: _converted(value, connection.dialect) for name, value in same.items()}
        one = insert_into("sqlite", table).on_conflict_do_nothing().values(**once).returning(key)
        return list(connection.execute(one, list(rows)).scalars())
    new = _inserts(connection, table, rows, same).returning(key)
    return list(connection.execute(new).scalars())


def insert_new(
    connection: sa.Connection,
    table: sa.Table,
    rows: Sequence[dict[str, Any]],
    same: Mapping[str, sa.ColumnElement[Any]],
) -> int:
    """Insert rows without documents as `insert_all` does; return how many are new."""
    counting = {"preserve_rowcount": True}
    new = _inserts(connection, table, rows, same)
    return connection.execute(new, execution_options=counting).rowcount


def _inserts(
    connection: sa.Connection,
    table: sa.Table,
    rows: Sequence[dict[str, Any]],
    same: Mapping[str, sa.ColumnElement[Any]],
) -> Any:
    common = _common(connection, table, rows)
    names = {name: name for name in rows[0] if name not in common}
    source = _given(connection, table, rows, names)
    columns = {**{column.name: column for column in source.c}, **common, **same}
    insert = insert_into(connection.dialect.name, table)
    # Without a condition, SQLite would take ON CONFLICT for that of a join.
    chosen = sa.select(*columns.values()).where(sa.true())
    return insert.from_select(list(columns), chosen).on_conflict_do_nothing()


def append_all(
    connection: sa.Connection,
    table: sa.Table,
    rows: Sequence[dict[str, Any]],
    same: Mapping[str, sa.ColumnElement[Any]],
) -> None:
    """Insert rows with equal keys, plus the columns `same`; the database counts their first key.

    SQLite's driver takes rows one by one in less time than SQLite reads them from JSON.
    """
    if len(rows) == 1 or not _is_postgresql(connection):
        connection.execute(sa.insert(table).values(**same), list(rows))
        return
    source = _given(connection, table, rows, {name: name for name in rows[0]})
    columns = {**{column.name: column for column in source.c}, **same}
    connection.execute(sa.insert(table).from_select(list(columns), sa.select(*columns.values())))


def _is_long(table: sa.Table, names: Iterable[str]) -> bool:
    """Return whether rows have documents: SQLite reads a JSON text once for each of its columns."""
    return any(isinstance(table.c[name].type, JsonText) for name in names)


def _converted(value: sa.ColumnElement[Any], dialect: Dialect) -> sa.ColumnElement[Any]:
    """Return a bound value in the form that the driver takes: each row would convert it again."""
    if not isinstance(value, sa.BindParameter):
        return value
    convert = value.type.dialect_impl(dialect).bind_processor(dialect)
    return value if convert is None else sa.literal(convert(value.value))


def _is_postgresql(connection: sa.Connection) -> bool:
    return connection.dialect.name == "postgresql"


def _common(
    connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]
) -> dict[str, sa.ColumnElement[Any]]:
    """Return the columns, except the key, with the same value in all rows: they are sent once."""
    first = rows[0]
    common: dict[str, sa.ColumnElement[Any]] = {
        name: sa.literal(value, table.c[name].type)
        for name, value in first.items()
        if not table.c[name].primary_key and all(row[name] == value for row in rows)
    }
    if not _is_postgresql(connection):
        return common
    return {name: sa.cast(value, table.c[name].type) for name, value in common.items()}


def _given(
    connection: sa.Connection,
    table: sa.Table,
    rows: Sequence[Mapping[str, Any]],
    names: Mapping[str, str],
) -> Any:
    """Return rows as a table expression, sent as one JSON text.

    `names` maps its keys to the columns of `table` that have their types. PostgreSQL would parse a
    list of values placeholder by placeholder, and arrays of texts are slow to write.
    """
    text = sa.literal(_as_text(connection, table, rows, names), sa.Text)
    return _rows_in(connection.dialect.name, text, table, names)


def _as_text(
    connection: sa.Connection,
    table: sa.Table,
    rows: Sequence[Mapping[str, Any]],
    names: Mapping[str, str],
) -> str:
    bound = {
        key: _bind_of(table.c[column].type, connection.dialect) for key, column in names.items()
    }
    if bound.keys() == rows[0].keys() and not any(bound.values()):
        return to_json(rows).decode()
    given = [
        {key: bind(row[key]) if bind else row[key] for key, bind in bound.items()} for row in rows
    ]
    return to_json(given).decode()


def _rows_in(
    dialect: str, text: sa.ColumnElement[str], table: sa.Table, names: Mapping[str, str]
) -> Any:
    if dialect == "postgresql":
        typed = [sa.column(key, table.c[column].type) for key, column in names.items()]
        rows_of = sa.func.json_to_recordset(sa.cast(text, sa.JSON))
        return rows_of.table_valued(*typed, name="given").render_derived(with_types=True)
    row = sa.func.json_each(text).table_valued("value").c.value
    values = (
        sa.func.json_extract(row, f"$.{key}", type_=table.c[column].type).label(key)
        for key, column in names.items()
    )
    # With an offset, the text is parsed once, whatever the order of a join.
    return sa.select(*values).offset(0).subquery("given")


# The text of rows in a statement that is made once.
_GIVEN_ROWS = sa.bindparam("given_rows", type_=sa.Text)
Names = tuple[tuple[str, str], ...]


def _bound(table: sa.Table, names: Names) -> dict[str, sa.ColumnElement[Any]]:
    """Return a parameter for each of `names`, for statements with one row."""
    return {key: sa.bindparam(key, type_=table.c[column].type) for key, column in names}


def _bind_of(kind: TypeEngine[Any], dialect: Dialect) -> Callable[[Any], Any] | None:
    """Return the function that makes a value of a type storable; None if values need none.

    Many rows share few texts and instants, and each takes a microsecond to make storable.
    """
    bind: Callable[[Any], Any] | None = None
    binds = getattr(type(kind), "process_bind_param", None)
    if dialect.name == "sqlite":
        bind = kind.dialect_impl(dialect).bind_processor(dialect)
    elif isinstance(kind, TypeDecorator) and binds is not TypeDecorator.process_bind_param:
        # An id stands in JSON as it is.
        is_id = isinstance(kind, HyphenatedUuid)
        bind = None if is_id else partial(kind.process_bind_param, dialect=dialect)
    return lru_cache(bind) if bind and isinstance(kind, UTCDateTime | StorableText) else bind


class Columns(Protocol):
    """Columns by name: of a table, or of given rows."""

    def __getitem__(self, key: str, /) -> sa.ColumnElement[Any]:
        """Return the column of that name."""


def update_each(
    connection: sa.Connection,
    table: sa.Table,
    rows: Sequence[Mapping[str, Any]],
    names: Mapping[str, str],
    change: "Change",
) -> int:
    """Execute one update for each of `rows`; return how many rows of `table` changed.

    The statement is made once for a `change` that is the same object each time.
    `names` maps the keys of a row to the columns of `table` that have their types; the primary key
    is one of them. PostgreSQL looks up each row by itself and locks it, in the order of the key: so
    no two deadlock. The plan of an ordinary join depends on statistics: those of a quiet moment say
    that nothing is unstarted.
    """
    if not rows:
        return 0
    statement = _updates(connection.dialect.name, table, tuple(names.items()), change)
    text = _as_text(connection, table, rows, names)
    return connection.execute(statement, {"given_rows": text}).rowcount


@dataclass(frozen=True, slots=True)
class Change:
    """An update by given rows: its condition (columns of the table, given ones), its values."""

    where: Callable[[Columns, Columns], Sequence[sa.ColumnElement[bool]]]
    values: Callable[[Columns], Mapping[str, Any]]
    # Whether the caller has locked the rows: they are then joined, not locked once more.
    is_locked: bool = False


@lru_cache(maxsize=128)
def _updates(dialect: str, table: sa.Table, names: Names, change: Change) -> sa.Update:
    given = _rows_in(dialect, _GIVEN_ROWS, table, dict(names))
    if dialect != "postgresql" or change.is_locked:
        return (
            sa.update(table).where(*change.where(table.c, given.c)).values(change.values(given.c))
        )
    (key,) = table.primary_key
    its_key = next(name for name, column in names if column == key.name)
    given = sa.select(given).order_by(given.c[its_key]).subquery("given")
    found = _found(table, given, change.where)
    return sa.update(table).where(key == found.c[key.name]).values(change.values(found.c))


def _found(table: sa.Table, given: Any, where: Any) -> sa.CTE:
    """Return the locked keys of the rows that the given rows name, with the given columns."""
    one = table.alias("one")
    (key,) = one.primary_key
    locked = sa.select(key).where(*where(one.c, given.c)).with_for_update(key_share=True)
    each = locked.lateral("each")
    found = sa.select(each, *given.c).select_from(given).join(each, sa.true())
    return found.cte("found").prefix_with("MATERIALIZED")


def select_each(
    connection: sa.Connection,
    query: sa.Select[Any],
    column: sa.Column[Any],
    values: Collection[Any],
) -> sa.Select[Any]:
    """Return `query` where `column` is one of many values, with at most one row for each.

    PostgreSQL looks up each value by itself: the plan of a list, an array or a join depends on
    statistics, and a table that was just filled has none.
    """
    if not _is_postgresql(connection):
        return query.where(column.in_(values))
    rows = [{"value": value} for value in values]
    given = _given(connection, column.table, rows, {"value": column.name})
    found = query.where(column == given.c.value).limit(1).lateral("found")
    return sa.select(found).select_from(given).join(found, sa.true())


def read_each(
    connection: sa.Connection,
    table: sa.Table,
    rows: Sequence[Mapping[str, Any]],
    names: Mapping[str, str],
    query: Callable[[Columns], sa.Select[Any]],
    *,
    is_ordered: bool = True,
) -> list[sa.Row[Any]]:
    """Return what `query` finds for each of `rows`, in their order, or without `is_ordered` in any.

    `names` maps the keys of a row to the columns of `table` that have their types. The statement is
    made once for a `query` that is the same object each time. SQLite runs it for each row, unless
    their order does not matter; then `query` must not have a limit.
    """
    if not rows:
        return []
    is_one = not is_ordered or _is_postgresql(connection)
    asked = _reads(connection.dialect.name, table, tuple(names.items()), query, is_one=is_one)
    if is_one:
        text = _as_text(connection, table, rows, names)
        found = connection.execute(asked, {"given_rows": text})
        return [row for row in found if is_ordered or row[0] is not None]
    return [row for given in rows for row in connection.execute(asked, dict(given))]


@lru_cache(maxsize=128)
def _reads(
    dialect: str,
    table: sa.Table,
    names: Names,
    query: Callable[[Columns], sa.Select[Any]],
    *,
    is_one: bool,
) -> sa.Select[Any]:
    if not is_one:
        return query(_bound(table, names))
    given = _rows_in(dialect, _GIVEN_ROWS, table, dict(names))
    if dialect != "postgresql":
        asked = query(given.c)
        # An outer join keeps the order of both: by the statistics of a quiet moment, SQLite would
        # begin with the index of what waits. `read_each` leaves out what has no match.
        both = given.outerjoin(table, asked.whereclause)
        return sa.select(*asked.selected_columns).select_from(both)
    found = query(given.c).lateral("found")
    return sa.select(found).select_from(given).join(found, sa.true())
