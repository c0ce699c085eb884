"""DuckDB as imports use it: in this process, for one import, shut in one folder, bounded.

No text of a user's is ever run as SQL here; names of columns are quoted, all else is passed as
parameters.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from runtime.data_sections import FetchSettings
from small_apps.failures import Stopped
from small_apps.watch import Watch

SPILL = "spill"


@dataclass(frozen=True, slots=True)
class Engine:
    """A DuckDB of one import; `run` is the only way in."""

    connection: duckdb.DuckDBPyConnection
    watch: Watch

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows. Raises duckdb.Error, and Stopped when asked to."""
        return self.cursor(sql, parameters).fetchall()

    def one(self, sql: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...]:
        """Return the only row of a statement."""
        (row,) = self.run(sql, parameters)
        return row

    def cursor(self, sql: str, parameters: Sequence[Any] = ()) -> duckdb.DuckDBPyConnection:
        """Run one statement, its rows unfetched."""
        self.watch.check()
        try:
            with self.watch.interrupted_by(self.connection.interrupt):
                return self.connection.execute(sql, list(parameters))
        except duckdb.InterruptException:
            raise Stopped from None


@contextmanager
def opened(folder: Path, settings: FetchSettings, watch: Watch | None = None) -> Iterator[Engine]:
    """Yield a fresh engine that reads and writes files of `folder` alone."""
    config: dict[str, Any] = {
        "memory_limit": f"{settings.memory_mb}MiB",
        "threads": settings.threads,
        "temp_directory": str(folder / SPILL),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
    }
    with duckdb.connect(":memory:", config=config) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"SET allowed_directories = [{literal(str(folder))}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield Engine(connection, watch or Watch())


def quoted(name: str) -> str:
    """Return `name` as an identifier, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return `text` as a string in SQL, where no parameter may stand."""
    return "'" + text.replace("'", "''") + "'"
