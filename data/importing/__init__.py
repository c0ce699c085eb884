"""Import of a source file into a snapshot file by DuckDB: read, type, merge, measure.

It runs in a child process: see `in_child`.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from data.bad_rows import BadRows
from data.beneath import opened_beneath
from data.failures import CUT_OFF, SourceFailed
from data.importing.column_types import check_key, check_types, typed_cells
from data.importing.duckdb_engine import Engine, opened, quoted
from data.importing.figures import figures_of
from data.importing.plain import Plain, unpacked
from data.importing.read_csv import load_csv
from data.importing.read_json import load_json
from data.importing.read_parquet import NO_COLUMN, load_parquet
from data.importing.tables import MARK, Table, cell
from data.limits import ImportLimits
from tasks.bounded.limits import Watch

if TYPE_CHECKING:
    from tasks.bounded.child import Call

# In these formats the part before a cut may look whole.
OF_LINES = ("csv", "jsonl")
ENDED_BEFORE = (
    "has no end of its last line, as it had at the last import; "
    f'{CUT_OFF}, or refresh once with "force": true'
)
PACKED_PARQUET = "is Parquet within zstd; write Parquet, whose pages may be zstd themselves"
_NUMBERS = ("INT", "DECIMAL", "DOUBLE", "FLOAT")


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

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Return the data of a child process's call."""
        made = {
            "file": Path(given["file"]),
            "rules": Rules(given["rules"]["columns"], tuple(given["rules"]["key"])),
            "bad_rows": BadRows.of(given["bad_rows"]),
            "root": given["root"] and Path(given["root"]),
        }
        return cls(**{**given, **made})

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


def answer(call: "Call") -> Mapping[str, Any]:
    """Import the file of the call; called in the child."""
    given = call.arguments
    limits, data = ImportLimits(**given["limits"]), Data.of(given["data"])
    target, last = Path(given["target"]), given["last"] and Path(given["last"])
    with os.fdopen(call.files[0], "rb") as stream:
        return asdict(import_data(limits, data, stream, target, last, call.watch))


def import_data(
    limits: ImportLimits,
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
    file = unpacked(stream, folder / "source", data.shown, limits, watch)
    if data.ended_before and file.is_open and data.format in OF_LINES:
        raise SourceFailed(f"{data.shown} {ENDED_BEFORE}")
    with opened(folder, limits, data.shown, watch) as engine:
        table = _read(engine, file, data)
        _check(table, data, limits)
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


def _check(table: Table, data: Data, limits: ImportLimits) -> None:
    """Leave out the rows that break the rules. Raises SourceFailed if they are too many."""
    if data.bad_rows.unit == "row":
        table.bad_rows.unit = "row"
    table.bad_rows.add(data.bad_rows.count, data.bad_rows.samples)
    check_types(table, data.rules.columns, data.shown)
    check_key(table, data.rules.key, data.shown)
    (good,) = table.engine.one(f"SELECT count(*) FROM {table.good}")
    table.bad_rows.check(good, limits.max_bad_rows, data.shown)


def _selected(table: Table, data: Data, last: Path | None) -> str:
    """Return SQL for the snapshot's rows."""
    if data.rules.key and last is not None:
        old = load_parquet(table.engine, last, "the last snapshot", "old")
        table = _joined(table, old)
        before = table.bad_rows.count
        check_types(table, data.rules.columns, "the last snapshot")
        if table.bad_rows.count > before:
            raise SourceFailed(
                f"{data.shown}: rows of the last snapshot do not match the declared columns; "
                'refresh once with "mode": "full"',
                permanent=True,
            )
    columns = typed_cells(table, data.rules.columns)
    wanted = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in columns.items())
    if not data.rules.key:
        return f"SELECT {wanted or f'NULL::INTEGER AS {NO_COLUMN}'} FROM {table.good}"
    # The last row of each key, in the order of the keys' first rows.
    keys = ", ".join(columns[name] for name in data.rules.key)
    return (
        f"SELECT {wanted} FROM (SELECT *, rowid AS row_ FROM {table.name}) "
        f"WHERE row_ NOT IN (FROM {table.name}_bad) "
        f"QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY row_ DESC) = 1 "
        f"ORDER BY min(row_) OVER (PARTITION BY {keys})"
    )


def _joined(new: Table, old: Table) -> Table:
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
