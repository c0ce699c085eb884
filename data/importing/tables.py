"""A source's rows in DuckDB as read: a table with a column for each of the source's."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count, islice

from data.bad_rows import MOST_SAMPLES, BadRow, BadRows, short
from data.failures import SourceFailed
from data.importing.duckdb_engine import Engine, quoted

MOST_COLUMNS = 5_000
# Before each name, so that a source's column may be called `rowid`.
MARK = "c "


def cell(name: str) -> str:
    """Return SQL for the column `name` of a table."""
    return quoted(MARK + name)


def _counted() -> Iterator[tuple[int, str]]:
    return ((number, "") for number in count(1))


@dataclass
class Table:
    """A table of the rows read, and the SQL type of each column; those of text formats are text.

    `places` yields the line (or row) number of each row, and its text if no column has it.
    """

    engine: Engine
    name: str
    types: dict[str, str]
    # Whether the format has types: its texts stay text.
    is_typed: bool = False
    # Columns of a text format whose every cell the format marks as a number.
    numbers: frozenset[str] = frozenset()
    bad_rows: BadRows = field(default_factory=BadRows)
    places: Callable[[], Iterator[tuple[int, str]]] = _counted

    def __post_init__(self) -> None:
        """Create the table of the rows that are left out."""
        self.engine.run(f"CREATE TABLE {self.name}_bad (row BIGINT)")

    @property
    def good(self) -> str:
        """SQL for the rows that are kept."""
        return f"(FROM {self.name} WHERE rowid NOT IN (FROM {self.name}_bad))"

    def reject(self, where: str, column: str | None, value: str | None, why: str) -> None:
        """Leave out the rows that match the SQL `where`.

        `value` is SQL for the value to show of each; None shows its text.
        """
        bad = f"{self.name}_bad"
        new = f"FROM {self.name} WHERE ({where}) AND rowid NOT IN (FROM {bad})"
        (found,) = self.engine.one(f"SELECT count(*) {new}")
        if not found:
            return
        shown = f"SELECT rowid, {value or 'NULL'} {new} ORDER BY rowid LIMIT {MOST_SAMPLES}"
        first = dict(self.engine.run(shown))
        self.engine.run(f"INSERT INTO {bad} SELECT rowid {new}")
        samples = [
            BadRow(line, column, short(text if value is None else first[row]), why)
            for row, (line, text) in enumerate(islice(self.places(), max(first) + 1))
            if row in first
        ]
        self.bad_rows.add(found, samples)


def checked_names(names: Iterable[str], fault: Callable[[str], SourceFailed]) -> tuple[str, ...]:
    """Return the names of columns; raises `fault` of the first problem."""
    found = tuple(names)
    if len(found) > MOST_COLUMNS:
        raise fault(f"has {len(found):,} columns; at most {MOST_COLUMNS:,} are allowed")
    for name in found:
        if not name.strip():
            raise fault("has a column without a name")
        if "\0" in name:
            raise fault(f"has a column name with a zero byte: {name!r}")
    for folded, times in Counter(name.lower() for name in found).items():
        if times > 1:
            both = [name for name in found if name.lower() == folded]
            raise fault(f"names a column twice: {both[0]!r} and {both[1]!r}")
    return found
