"""A source's rows in DuckDB as read: the table `raw` with columns c0, c1, …"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from data.failures import SourceFailed
from data.importing.bad_rows import MOST_SAMPLES, BadRow, BadRows, short
from data.importing.columnar import Engine

MOST_COLUMNS = 5_000


def _counted(rows: Sequence[int]) -> Mapping[int, tuple[int, str]]:
    return {row: (row + 1, "") for row in rows}


@dataclass
class Table:
    """A table of the rows read. Cells of text formats are text; Parquet has its own types.

    The table `bad` holds the rowids of rows left out; `lines` returns the places of rows.
    """

    engine: Engine
    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    # Whether the format has types: its texts stay text.
    is_typed: bool = False
    # Columns of a text format whose every cell the format marks as a number.
    numbers: frozenset[int] = frozenset()
    bad_rows: BadRows = field(default_factory=BadRows)
    # For some rows: the line (or row) number of each, and its text if the format has lines.
    lines: Callable[[Sequence[int]], Mapping[int, tuple[int, str]]] = _counted

    @property
    def bad(self) -> str:
        """The name of the table of bad rows."""
        return f"{self.name}_bad"

    @property
    def good(self) -> str:
        """SQL for the rows that are kept."""
        known = f"SELECT row FROM {self.bad}"
        return f"(SELECT * FROM {self.name} WHERE rowid NOT IN ({known}))"

    def leave_out(self, where: str, column: int | None, value: str | None, why: str) -> None:
        """Leave out the rows that match the SQL `where`.

        `value` is SQL for the value to show of each; None shows its line.
        """
        engine, known = self.engine, f"SELECT row FROM {self.bad}"
        new = f"SELECT rowid AS row FROM {self.name} WHERE ({where}) AND rowid NOT IN ({known})"
        (count,) = engine.one(f"SELECT count(*) FROM ({new})")
        if not count:
            return
        first = engine.run(
            f"SELECT rowid, {value or 'NULL'} FROM {self.name} "
            f"WHERE rowid IN ({new}) ORDER BY rowid LIMIT {MOST_SAMPLES}"
        )
        engine.run(f"INSERT INTO {self.bad} {new}")
        lines = self.lines([row for row, _value in first])
        named = None if column is None else self.columns[column]
        samples = []
        for row, cell in first:
            line, text = lines[row]
            samples.append(BadRow(line, named, short(text if value is None else cell), why))
        self.bad_rows.add(count, samples)


def made(table: Table) -> Table:
    """Create the table of bad rows; return `table`."""
    table.engine.run(f"CREATE TABLE {table.bad} (row BIGINT)")
    return table


def checked_names(names: Iterable[str], fault: Callable[[str], SourceFailed]) -> tuple[str, ...]:
    """Return the names of columns; raises `fault` of the first problem."""
    found = tuple(names)
    if len(found) > MOST_COLUMNS:
        raise fault(f"has {len(found):,} columns; at most {MOST_COLUMNS:,} are allowed")
    for name, count in Counter(found).items():
        if not name.strip():
            raise fault("has a column without a name")
        if "\0" in name:
            raise fault(f"has a column name with a zero byte: {name!r}")
        if count > 1:
            raise fault("names a column twice")
    folded: dict[str, str] = {}
    for name in found:
        if name.lower() in folded:
            other = folded[name.lower()]
            raise fault(f"names a column twice: {other!r} and {name!r} differ only in capitals")
        folded[name.lower()] = name
    return found


def cells(count: int) -> tuple[str, ...]:
    """Return the names of the columns in DuckDB."""
    return tuple(f"c{number}" for number in range(count))
