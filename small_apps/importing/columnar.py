"""DuckDB as imports use it: in this process, for one import, shut in one folder, bounded.

No text of a user's is ever run as SQL here; names of columns are quoted, all else is passed as
parameters.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import disk_usage
from typing import Any

import duckdb

from runtime.data_sections import FetchSettings
from small_apps.failures import Stopped
from small_apps.watch import Watch

SPILL = "spill"
# An import holds its rows a few times, unpacked and as wide as the engine makes them.
SPILL_TO_SOURCE = 32


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
        except UnicodeDecodeError:
            # DuckDB shows a fault's surroundings, and cuts them off within a letter.
            raise duckdb.InvalidInputException("its text cannot be read") from None


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
        # In the configuration it is shown and not kept to.
        most = _most_spilled(folder, settings)
        connection.execute(f"SET max_temp_directory_size = '{most}B'")
        connection.execute(f"SET allowed_directories = [{literal(str(folder))}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield Engine(connection, watch or Watch())


def told_of_memory(error: duckdb.OutOfMemoryException, settings: FetchSettings) -> str:
    """Return what there was not enough of."""
    if "max_temp_directory_size" in str(error):
        return (
            f"more than {SPILL_TO_SOURCE} times SCHED_FETCH_MAX_BYTES={settings.max_bytes} "
            "once it is unpacked, or than half of the free disk"
        )
    told = str(error).partition("\n")[0]
    return f"more than SCHED_FETCH_MEMORY_MB={settings.memory_mb}: {told}"


def _most_spilled(folder: Path, settings: FetchSettings) -> int:
    """Return how much of the disk one engine may take: a small Parquet file unpacks to anything."""
    return min(SPILL_TO_SOURCE * settings.max_bytes, disk_usage(folder).free // 2)


def quoted(name: str) -> str:
    """Return `name` as an identifier, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return `text` as a string in SQL, where no parameter may stand."""
    return "'" + text.replace("'", "''") + "'"
