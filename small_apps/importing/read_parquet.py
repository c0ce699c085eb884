"""Parquet to a table with its types."""

from pathlib import Path

import duckdb

from small_apps.failures import SourceFailed, first_line
from small_apps.importing.columnar import Engine, quoted
from small_apps.importing.tables import Table, cells, checked_names, made

# The only column of a snapshot whose rows have none.
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
        text = first_line(error).replace(str(file), shown)
        raise SourceFailed(f"{shown}: not Parquet: {text}", permanent=True) from None
    if names == [NO_COLUMN]:
        names, described = [], []
    columns = checked_names(names, lambda what: SourceFailed(f"{shown} {what}", permanent=True))
    table = Table(engine, name, columns, tuple(row[1] for row in described), True)
    table.bad_rows.unit = "row"
    return made(table)
