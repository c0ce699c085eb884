"""Parquet to a table with its types."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from data.failures import SourceFailed
from data.importing.duckdb_engine import Engine, opened, reading
from data.importing.tables import MARK, Table, checked_names
from data.limits import ImportLimits

# The only column of a snapshot whose rows have none.
NO_COLUMN = "_no_column"
# One cell may have megabytes.
FETCHED_AT_ONCE = 100


def load_parquet(engine: Engine, file: Path, shown: str, name: str = "raw") -> Table:
    """Return the rows of `file`. Raises SourceFailed."""
    marked = f"COLUMNS('(?s)(.*)') AS '{MARK}\\1'"
    with reading(file, shown, "Parquet"):
        engine.run(f"CREATE TABLE {name} AS SELECT {marked} FROM read_parquet(?)", [str(file)])
    types = {row[0].removeprefix(MARK): row[1] for row in engine.run(f"DESCRIBE {name}")}
    types.pop(NO_COLUMN, None)
    checked_names(types, lambda what: SourceFailed(f"{shown} {what}", permanent=True))
    table = Table(engine, name, types, is_typed=True)
    table.bad_rows.unit = "row"
    return table


def rows_of(file: Path, shown: str, limits: ImportLimits) -> Iterator[dict[str, Any]]:
    """Yield the rows of a snapshot in order; the engine reads a part of the file at a time.

    Raises SourceFailed, also after some rows.
    """
    # Each thread would hold a part of its own.
    alone = replace(limits, threads=1)
    with opened(file.parent, alone, shown) as engine, reading(file, shown, "Parquet"):
        cursor = engine.cursor(
            "SELECT * FROM read_parquet(?, hive_partitioning = false)", [str(file)]
        )
        names = [column[0] for column in cursor.description or ()]
        if names == [NO_COLUMN]:
            names = []
        while rows := cursor.fetchmany(FETCHED_AT_ONCE):
            for row in rows:
                yield dict(zip(names, row, strict=False))
