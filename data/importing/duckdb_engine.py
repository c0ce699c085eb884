"""A DuckDB engine of one import: in this process, confined to one folder, bounded.

User text never runs as SQL: column names are quoted, all else is passed as parameters.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import disk_usage
from typing import Any

import duckdb

from data.failures import SourceFailed, Stopped, first_line
from data.limits import ImportLimits
from tasks.bounded.limits import Watch

SPILL = "spill"
LONGEST_LINE = 2 << 20
LINES_AT_ONCE = 1_000
# The rest of the memory is for the allocator, and for what DuckDB does not count.
ENGINE_SHARE = 2
# An import holds its rows several times, unpacked and in the engine's wider types.
SPILL_TO_SOURCE = 32


@dataclass(frozen=True, slots=True)
class Engine:
    """The DuckDB engine of one import."""

    connection: duckdb.DuckDBPyConnection
    watch: Watch

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows. Raises duckdb.Error and Stopped."""
        return self.cursor(sql, parameters).fetchall()

    def one(self, sql: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...]:
        """Return the only row of a statement."""
        (row,) = self.run(sql, parameters)
        return row

    def cursor(self, sql: str, parameters: Sequence[Any] = ()) -> duckdb.DuckDBPyConnection:
        """Run one statement and return the cursor, its rows unfetched."""
        self.watch.check()
        try:
            with self.watch.interrupted_by(self.connection.interrupt):
                return self.connection.execute(sql, list(parameters))
        except duckdb.InterruptException:
            raise Stopped from None
        except UnicodeDecodeError:
            # DuckDB quotes the text around an error, and may cut it within a character.
            raise duckdb.InvalidInputException("its text cannot be read") from None

    def lines(self, file: Path) -> Iterator[str]:
        r"""Yield the lines of a packed file, each with `\n` as its end. Raises UnicodeError."""
        # Parted at a character that no text has.
        read = (
            "SELECT coalesce(line, '') || chr(10) FROM read_csv(?, columns = {'line': 'VARCHAR'}, "
            "auto_detect = false, header = false, quote = '', escape = '', strict_mode = false, "
            f"delim = '\U0010ffff', max_line_size = {LONGEST_LINE}, "
            f"buffer_size = {4 * LONGEST_LINE})"
        )
        try:
            cursor = self.cursor(read, [str(file)])
            while rows := cursor.fetchmany(LINES_AT_ONCE):
                yield from (line for (line,) in rows)
        except duckdb.InvalidInputException as error:
            if "unicode" in str(error):
                raise UnicodeError from None
            raise


@contextmanager
def opened(
    folder: Path, limits: ImportLimits, shown: str, watch: Watch | None = None
) -> Iterator[Engine]:
    """Yield a new engine that reads and writes files in `folder` only.

    Its errors, and that it needs too much memory, become SourceFailed of `shown`.
    """
    config: dict[str, Any] = {
        "memory_limit": f"{limits.memory_mb // ENGINE_SHARE}MiB",
        "threads": limits.threads,
        "temp_directory": str(folder / SPILL),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
    }
    try:
        with duckdb.connect(":memory:", config=config) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            # DuckDB ignores this option in the configuration.
            most = _most_spilled(folder, limits)
            connection.execute(f"SET max_temp_directory_size = '{most}B'")
            connection.execute(f"SET allowed_directories = [{literal(str(folder))}]")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            yield Engine(connection, watch or Watch())
    except duckdb.OutOfMemoryException as error:
        raise SourceFailed(f"{shown} needs {_memory_text(error, limits)}") from None
    except duckdb.Error as error:
        raise SourceFailed(f"{shown}: {first_line(error)}") from None


@contextmanager
def reading(file: Path, shown: str, what: str, *, permanent: bool = True) -> Iterator[None]:
    """Raise SourceFailed, which says that `file` is no `what`, if DuckDB cannot read it."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        text = first_line(error).replace(str(file), shown)
        raise SourceFailed(f"{shown}: not {what}: {text}", permanent=permanent) from None


def _memory_text(error: duckdb.OutOfMemoryException, limits: ImportLimits) -> str:
    """Return the limit that the import exceeded."""
    if "max_temp_directory_size" in str(error):
        return (
            f"more than {SPILL_TO_SOURCE} times SCHED_FETCH_MAX_BYTES={limits.max_bytes} "
            "once it is unpacked, or more than half of the free disk"
        )
    return (
        f"more than SCHED_FETCH_MEMORY_MB={limits.memory_mb} of memory; make it smaller, or "
        "raise SCHED_FETCH_MEMORY_MB"
    )


def _most_spilled(folder: Path, limits: ImportLimits) -> int:
    """Return the bytes of disk that one engine may use: a small Parquet file may unpack to any."""
    return min(SPILL_TO_SOURCE * limits.max_bytes, disk_usage(folder).free // 2)


def quoted(name: str) -> str:
    """Return any `name` as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return `text` as an SQL string literal, where parameters are not allowed."""
    return "'" + text.replace("'", "''") + "'"
