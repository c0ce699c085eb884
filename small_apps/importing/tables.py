"""A source's rows in DuckDB, as they were read: the table `raw` with columns c0, c1, …"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from small_apps.failures import SourceFailed
from small_apps.importing.bad_rows import MOST_SAMPLES, Fault, Faults, short
from small_apps.importing.columnar import Engine

MOST_COLUMNS = 5_000


def _counted(rows: Sequence[int]) -> Mapping[int, tuple[int, str]]:
    return {row: (row + 1, "") for row in rows}


@dataclass
class Table:
    """What was read. The cells of text formats are text; Parquet brings its own types.

    `bad` is a table of those rows (by rowid) that are left out; `lines` tells where rows stood.
    """

    engine: Engine
    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    # Whether the format brings the types: its texts are texts.
    is_typed: bool = False
    # Columns of a text format whose every cell the format itself calls a number.
    numbers: frozenset[int] = frozenset()
    faults: Faults = field(default_factory=Faults)
    # Of some rows: the line (or row) that each stood on, and its text where the format has lines.
    lines: Callable[[Sequence[int]], Mapping[int, tuple[int, str]]] = _counted

    @property
    def bad(self) -> str:
        """The name of the table of bad rows."""
        return f"{self.name}_bad"

    @property
    def good(self) -> str:
        """SQL for the rows that stay."""
        known = f"SELECT row FROM {self.bad}"
        return f"(SELECT * FROM {self.name} WHERE rowid NOT IN ({known}))"

    def leave_out(self, where: str, column: int | None, value: str | None, why: str) -> None:
        """Leave out the rows that SQL `where` finds.

        `value` is SQL for what is shown of each; None: its line.
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
            samples.append(Fault(line, named, short(text if value is None else cell), why))
        self.faults.add(count, samples)


def made(table: Table) -> Table:
    """Return `table` once its table of bad rows is there too."""
    table.engine.run(f"CREATE TABLE {table.bad} (row BIGINT)")
    return table


def checked_names(names: Iterable[str], fault: Callable[[str], SourceFailed]) -> tuple[str, ...]:
    """Return the names of columns; raises what `fault` makes of the first thing that is wrong."""
    found = tuple(names)
    if len(found) > MOST_COLUMNS:
        raise fault(f"has {len(found):,} columns; {MOST_COLUMNS:,} are the most")
    for name, count in Counter(found).items():
        if not name.strip():
            raise fault("has a column without a name")
        if "\0" in name:
            raise fault(f"has a column whose name holds a zero byte: {name!r}")
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
    """Return the names that the columns have in DuckDB."""
    return tuple(f"c{number}" for number in range(count))
