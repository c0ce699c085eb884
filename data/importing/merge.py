"""Merge of new rows into the last snapshot by key; new rows replace old ones."""

from collections.abc import Mapping, Sequence

from data.importing.duckdb_engine import quoted
from data.importing.tables import MARK, Table, cell

_NUMBERS = ("INT", "DECIMAL", "DOUBLE", "FLOAT")


def joined(new: Table, old: Table) -> Table:
    """Return a table of the rows of `old`, followed by those of `new`.

    All columns become text, their kinds to be inferred again, unless the format has types.
    """
    # To DuckDB, names that differ only in capitals are one; the new rows spell it.
    spelled = {name.lower(): name for name in new.types}
    type_ = "" if new.is_typed else "::VARCHAR"
    parts = []
    for table in (old, new):
        cells = (
            f"{cell(name)}{type_} AS {cell(spelled.get(name.lower(), name))}"
            for name in table.types
        )
        parts.append(f"SELECT {', '.join(cells) or 'NULL AS none'} FROM {table.good}")
    new.engine.run(f"CREATE TABLE joined AS {' UNION ALL BY NAME '.join(parts)}")
    described = new.engine.run("DESCRIBE joined")
    types = {row[0].removeprefix(MARK): row[1] for row in described if row[0].startswith(MARK)}
    numbers = frozenset(name for name in types if _is_number(name, new) and _is_number(name, old))
    return Table(new.engine, "joined", types, new.is_typed, numbers, new.bad_rows)


def _is_number(name: str, table: Table) -> bool:
    """Return whether all cells of a column are numbers, as those of a missing one are."""
    type_ = table.types.get(name, "INT")
    return name in table.numbers or any(sign in type_ for sign in _NUMBERS)


def latest(table: Table, columns: Mapping[str, str], key: Sequence[str]) -> str:
    """Return SQL for the last row of each key, ordered by the key's first row."""
    keys = ", ".join(columns[name] for name in key)
    wanted = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in columns.items())
    return (
        f"SELECT {wanted} FROM (SELECT *, rowid AS row_ FROM {table.name}) "
        f"WHERE row_ NOT IN (FROM {table.name}_bad) "
        f"QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY row_ DESC) = 1 "
        f"ORDER BY min(row_) OVER (PARTITION BY {keys})"
    )
