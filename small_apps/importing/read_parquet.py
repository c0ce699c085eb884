"""Parquet to a table, with its own types."""

from pathlib import Path

import duckdb

from small_apps.failures import SourceFailed
from small_apps.importing.columnar import Engine, quoted
from small_apps.importing.tables import Table, cells, checked_names, made

# Stands in a snapshot whose rows have no column at all.
NO_COLUMN = "_no_column"


def load_parquet(engine: Engine, file: Path, shown: str, name: str = "raw") -> Table:
    """Return the rows of `file`. Raises SourceFailed."""
    try:
        described = engine.run("DESCRIBE SELECT * FROM read_parquet(?)", [str(file)])
        names = [row[0] for row in described]
        wanted = ", ".join(
            f"{quoted(column)} AS {place}"
            for column, place in zip(names, cells(len(names)), strict=True)
        )
        engine.run(f"CREATE TABLE {name} AS SELECT {wanted} FROM read_parquet(?)", [str(file)])
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        told = str(error).partition("\n")[0].replace(str(file), shown)
        raise SourceFailed(f"{shown}: no Parquet: {told}", permanent=True) from None
    if names == [NO_COLUMN]:
        names, described = [], []
    columns = checked_names(names, lambda what: SourceFailed(f"{shown} {what}", permanent=True))
    table = Table(engine, name, columns, tuple(row[1] for row in described), True)
    table.faults.unit = "row"
    return made(table)
