"""Import of a source file into a snapshot file by DuckDB: read, type, merge, measure.

It runs in a child process: see `in_child`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path
from typing import Any, BinaryIO

from data.beneath import opened_beneath
from data.failures import CUT_OFF, SourceFailed
from data.importing.bad_rows import BadRows
from data.importing.column_types import check_key, check_types, typed_cells
from data.importing.duckdb_engine import Engine, opened, quoted
from data.importing.figures import figures_of
from data.importing.merge import joined, latest
from data.importing.plain import Plain, unpacked
from data.importing.read_csv import load_csv
from data.importing.read_json import load_json
from data.importing.read_parquet import NO_COLUMN, load_parquet
from data.importing.tables import Table
from data.settings import FetchSettings
from tasks.bounded.watch import Watch

# In these formats the part before a cut may look whole.
OF_LINES = ("csv", "jsonl")
ENDED_BEFORE = (
    "has no end of its last line, as it had at the last import; "
    f'{CUT_OFF}, or refresh once with "force": true'
)

PACKED_PARQUET = "is Parquet within zstd; write Parquet, whose pages may be zstd themselves"


@dataclass(frozen=True, slots=True)
class Rules:
    """A domain's rules for its rows: declared kinds of columns, and the key to merge by, if any."""

    columns: Mapping[str, str] = field(default_factory=dict)
    key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Data:
    """A source's data on this machine, to be imported; `bad_rows` were left out by the fetch.

    The path of a file of the data root is relative to this `root`. `ended_before` is whether the
    last line of the source had an end at its last import.
    """

    file: Path
    format: str
    shown: str
    rules: Rules = Rules()
    bad_rows: BadRows = field(default_factory=BadRows)
    root: Path | None = None
    ended_before: bool = False

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Yield the open file. Raises SourceFailed."""
        if self.root is not None:
            with opened_beneath(self.root, str(self.file)) as stream:
                yield stream
            return
        try:
            stream = self.file.open("rb")
        except OSError as error:
            raise SourceFailed(f"{self.shown}: {error.strerror}") from None
        with stream:
            yield stream


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import: the snapshot's digest and figures, and the rows left out."""

    digest: str
    figures: dict[str, Any]
    bad_rows: BadRows

    @property
    def row_count(self) -> int:
        """The number of rows of the snapshot."""
        return int(self.figures["rows"])


def import_data(
    settings: FetchSettings,
    data: Data,
    stream: BinaryIO,
    target: Path,
    last: Path | None,
    watch: Watch,
) -> Imported:
    """Write the rows of `data` to `target` as Parquet; temporary files go to its folder.

    `stream` is the open file of `data`. With a key, the rows are merged into those of the snapshot
    `last`. Raises SourceFailed if no row, or too small a share of them, can be read; and Stopped.
    """
    folder = target.parent
    file = unpacked(stream, folder / "source", data.shown, settings, watch)
    if data.ended_before and file.is_open and data.format in OF_LINES:
        raise SourceFailed(f"{data.shown} {ENDED_BEFORE}")
    with opened(folder, settings, data.shown, watch) as engine:
        table = _read(engine, file, data)
        _check(table, data, settings)
        sql = _selected(table, data, last)
        engine.run(
            f"COPY ({sql}) TO $1 (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)",
            [str(target)],
        )
        figures = figures_of(engine, target)
        if data.format in OF_LINES:
            figures["ended"] = not file.is_open
    with target.open("rb") as made:
        return Imported(file_digest(made, "sha256").hexdigest(), figures, table.bad_rows)


def _read(engine: Engine, file: Plain, data: Data) -> Table:
    if data.format == "parquet":
        if file.is_zstd:
            raise SourceFailed(f"{data.shown} {PACKED_PARQUET}", permanent=True)
        return load_parquet(engine, file.path, data.shown)
    if data.format == "csv":
        return load_csv(engine, file, data.shown)
    return load_json(engine, file, data.shown, data.format)


def _check(table: Table, data: Data, settings: FetchSettings) -> None:
    """Leave out the rows that break the rules. Raises SourceFailed if they are too many."""
    if data.bad_rows.unit == "row":
        table.bad_rows.unit = "row"
    table.bad_rows.add(data.bad_rows.count, data.bad_rows.samples)
    check_types(table, data.rules.columns, data.shown)
    check_key(table, data.rules.key, data.shown)
    (good,) = table.engine.one(f"SELECT count(*) FROM {table.good}")
    table.bad_rows.check(good, settings.max_bad_rows, data.shown)


def _selected(table: Table, data: Data, last: Path | None) -> str:
    """Return SQL for the snapshot's rows."""
    if data.rules.key and last is not None:
        old = load_parquet(table.engine, last, "the last snapshot", "old")
        table = joined(table, old)
        before = table.bad_rows.count
        check_types(table, data.rules.columns, "the last snapshot")
        if table.bad_rows.count > before:
            raise SourceFailed(
                f"{data.shown}: rows of the last snapshot do not match the declared columns; "
                'refresh once with "mode": "full"',
                permanent=True,
            )
    columns = typed_cells(table, data.rules.columns)
    if data.rules.key:
        return latest(table, columns, data.rules.key)
    wanted = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in columns.items())
    return f"SELECT {wanted or f'NULL::INTEGER AS {NO_COLUMN}'} FROM {table.good}"
