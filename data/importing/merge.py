"""Merge of new rows into the last snapshot by key; new rows replace old ones."""

from collections.abc import Sequence

from data.importing.columns import Column
from data.importing.tables import Table, cells, made

_NUMBERS = ("INT", "DECIMAL", "DOUBLE", "FLOAT")


def joined(new: Table, old: Table) -> Table:
    """Return a table of the rows of `old`, followed by those of `new`.

    A column becomes text, its kind to be inferred again, unless a typed format gives both tables
    the same type.
    """
    columns = tuple(dict.fromkeys((*old.columns, *new.columns)))
    types = tuple(_type(name, new, old) for name in columns)
    numbers = frozenset(n for n, name in enumerate(columns) if _is_number(name, new, old))
    parts = (
        f"SELECT {_wanted(table, columns, types)}, {batch} AS batch, rowid AS place "
        f"FROM {table.name} WHERE rowid NOT IN (SELECT row FROM {table.bad})"
        for batch, table in enumerate((old, new))
    )
    name = "joined"
    new.engine.run(f"CREATE TABLE {name} AS {' UNION ALL '.join(parts)}")
    return made(Table(new.engine, name, columns, types, new.is_typed, numbers, new.bad_rows))


def latest(table: Table, columns: Sequence[Column], key: Sequence[str]) -> str:
    """Return SQL for the last row of each key, ordered by the key's first row."""
    keys = ", ".join(column.cell for column in columns if column.name in key)
    wanted = ", ".join(column.wanted for column in columns)
    ranked = (
        "SELECT *, "
        f"row_number() OVER (PARTITION BY {keys} ORDER BY batch DESC, place DESC) AS rank_, "
        f"min(batch * 1000000000000 + place) OVER (PARTITION BY {keys}) AS first_ "
        f"FROM {table.good}"
    )
    return f"SELECT {wanted} FROM ({ranked}) WHERE rank_ = 1 ORDER BY first_"


def _type(name: str, new: Table, old: Table) -> str:
    found = {t.types[t.columns.index(name)] for t in (new, old) if name in t.columns}
    return found.pop() if new.is_typed and len(found) == 1 else "VARCHAR"


def _is_number(name: str, new: Table, old: Table) -> bool:
    return all(_is_number_in(name, table) for table in (new, old) if name in table.columns)


def _is_number_in(name: str, table: Table) -> bool:
    number = table.columns.index(name)
    return number in table.numbers or any(sign in table.types[number] for sign in _NUMBERS)


def _wanted(table: Table, columns: Sequence[str], types: Sequence[str]) -> str:
    parts = []
    for place, name, type_ in zip(cells(len(columns)), columns, types, strict=True):
        cell = f"c{table.columns.index(name)}" if name in table.columns else "NULL"
        parts.append(f"CAST({cell} AS {type_}) AS {place}")
    return ", ".join(parts)
