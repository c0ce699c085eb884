"""Statements for many given rows: PostgreSQL gets them as one JSON text, SQLite one by one."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Protocol

import sqlalchemy as sa
from pydantic_core import to_json
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine


def insert_all(
    connection: sa.Connection,
    table: sa.Table,
    rows: Sequence[dict[str, Any]],
    same: Mapping[str, sa.ColumnElement[Any]],
) -> list[Any]:
    """Insert rows with equal keys, plus the columns `same`; return the first keys of new rows.

    Rows with an existing key are ignored. PostgreSQL gets all rows in one statement.
    """
    key = next(iter(table.primary_key))
    if connection.dialect.name == "postgresql":
        common = _common(table, rows)
        names = {name: name for name in rows[0] if name not in common}
        source = _given(connection, table, rows, names)
        columns = {**{column.name: column for column in source.c}, **common, **same}
        insert = postgresql.insert(table).from_select(list(columns), sa.select(*columns.values()))
        return list(connection.execute(insert.on_conflict_do_nothing().returning(key)).scalars())
    once = {name: _converted(value, connection.dialect) for name, value in same.items()}
    statement = sqlite.insert(table).on_conflict_do_nothing().values(**once).returning(key)
    return list(connection.execute(statement, list(rows)).scalars())


def _converted(value: sa.ColumnElement[Any], dialect: Dialect) -> sa.ColumnElement[Any]:
    """Return a bound value in the form that the driver takes: each row would convert it again."""
    if not isinstance(value, sa.BindParameter):
        return value
    convert = value.type.dialect_impl(dialect).bind_processor(dialect)
    return value if convert is None else sa.literal(convert(value.value))


def _common(table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> dict[str, sa.ColumnElement[Any]]:
    """Return the columns, except the key, with the same value in all rows: they are sent once."""
    first = rows[0]
    return {
        name: sa.cast(sa.literal(value, table.c[name].type), table.c[name].type)
        for name, value in first.items()
        if not table.c[name].primary_key and all(row[name] == value for row in rows)
    }


def _given(
    connection: sa.Connection,
    table: sa.Table,
    rows: Sequence[Mapping[str, Any]],
    names: Mapping[str, str],
) -> Any:
    """Return rows as a table expression of PostgreSQL, sent as one JSON text.

    `names` maps its keys to the columns of `table` that have their types. A list of values would be
    parsed again, placeholder by placeholder; arrays of texts are slow to write.
    """
    text = sa.literal(_as_text(connection, table, rows, names), sa.Text)
    return _rows_in(text, table, names)


def _as_text(
    connection: sa.Connection,
    table: sa.Table,
    rows: Sequence[Mapping[str, Any]],
    names: Mapping[str, str],
) -> str:
    bound = {
        key: _bind_of(table.c[column].type, connection.dialect) for key, column in names.items()
    }
    given = [
        {key: bind(row[key]) if bind else row[key] for key, bind in bound.items()} for row in rows
    ]
    return to_json(given).decode()


def _rows_in(text: sa.ColumnElement[str], table: sa.Table, names: Mapping[str, str]) -> Any:
    typed = [sa.column(key, table.c[column].type) for key, column in names.items()]
    rows_of = sa.func.json_to_recordset(sa.cast(text, postgresql.JSON))
    return rows_of.table_valued(*typed, name="given").render_derived(with_types=True)


# Given rows in a statement that is made once.
_GIVEN_ROWS = sa.bindparam("given_rows", type_=sa.Text)
Names = tuple[tuple[str, str], ...]


def _bound(table: sa.Table, names: Names) -> dict[str, sa.ColumnElement[Any]]:
    """Return a parameter for each of `names`, for statements with one row."""
    return {key: sa.bindparam(key, type_=table.c[column].type) for key, column in names}


def _bind_of(kind: TypeEngine[Any], dialect: Dialect) -> Callable[[Any], Any] | None:
    """Return the function that makes a value of a type storable; None if values need none."""
    binds = getattr(type(kind), "process_bind_param", None)
    if isinstance(kind, TypeDecorator) and binds is not TypeDecorator.process_bind_param:
        return partial(kind.process_bind_param, dialect=dialect)
    return None


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
    is one of them. PostgreSQL gets all rows in one statement that looks up each by itself and locks
    it, in the order of the key: so no two deadlock. The plan of an ordinary join depends on
    statistics: those of a quiet moment say that nothing is unstarted.
    """
    if not rows:
        return 0
    statement = _updates(connection.dialect.name, table, tuple(names.items()), change)
    if connection.dialect.name == "postgresql":
        text = _as_text(connection, table, rows, names)
        return connection.execute(statement, {"given_rows": text}).rowcount
    return connection.execute(statement, [dict(row) for row in rows]).rowcount


@dataclass(frozen=True, slots=True)
class Change:
    """An update by given rows: its condition (columns of the table, given ones), its values."""

    where: Callable[[Columns, Columns], Sequence[sa.ColumnElement[bool]]]
    values: Callable[[Columns], Mapping[str, Any]]


@lru_cache(maxsize=128)
def _updates(dialect: str, table: sa.Table, names: Names, change: Change) -> sa.Update:
    if dialect != "postgresql":
        one = _bound(table, names)
        return sa.update(table).where(*change.where(table.c, one)).values(change.values(one))
    (key,) = table.primary_key
    given = _rows_in(_GIVEN_ROWS, table, dict(names))
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
    if connection.dialect.name != "postgresql":
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
) -> list[sa.Row[Any]]:
    """Return what `query` finds for each of `rows`, in their order.

    `names` maps the keys of a row to the columns of `table` that have their types. PostgreSQL gets
    all rows in one statement, which is made once for a `query` that is the same object each time.
    """
    if not rows:
        return []
    asked = _reads(connection.dialect.name, table, tuple(names.items()), query)
    if connection.dialect.name == "postgresql":
        text = _as_text(connection, table, rows, names)
        return list(connection.execute(asked, {"given_rows": text}))
    return [row for given in rows for row in connection.execute(asked, dict(given))]


@lru_cache(maxsize=128)
def _reads(
    dialect: str, table: sa.Table, names: Names, query: Callable[[Columns], sa.Select[Any]]
) -> sa.Select[Any]:
    if dialect != "postgresql":
        return query(_bound(table, names))
    given = _rows_in(_GIVEN_ROWS, table, dict(names))
    found = query(given.c).lateral("found")
    return sa.select(found).select_from(given).join(found, sa.true())
