"""The kind of each column of a table: declared, given by the format, or inferred from its cells."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from data.failures import SourceFailed
from data.importing.columnar import quoted
from data.importing.kinds import KINDS, TEXT, filled, fits, tried
from data.importing.tables import Table, cells
from models.problems import unknown_name

SAMPLE_ROWS = 1_000
ASKED_AT_ONCE = 50
_HAS_ZONE = r"regexp_matches({0}, ':[0-9.]+ ?(Z|[+-][0-9]{2}(:?[0-9]{2})?)$')"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a snapshot: its name, and SQL for its typed cells in the table read."""

    name: str
    cell: str

    @property
    def wanted(self) -> str:
        """SQL for the column in a select list."""
        return f"{self.cell} AS {quoted(self.name)}"


def declare(table: Table, declared: Mapping[str, str], shown: str) -> None:
    """Leave out the rows whose cells do not match their declared kind. Raises SourceFailed."""
    for name, kind in declared.items():
        if name not in table.columns:
            text = unknown_name("column", name, table.columns)
            raise SourceFailed(f"{shown}: column {name!r} {text}", permanent=True)
        number = table.columns.index(name)
        place = f"c{number}"
        if table.types[number] != "VARCHAR":
            _as_text(table, number)
        wrong = f"NOT {fits(kind, place, declared=True)}"
        table.leave_out(wrong, number, place, f"is not a valid {kind}")


def settle(table: Table, declared: Mapping[str, str]) -> list[Column]:
    """Return the columns of `table` with their kinds."""
    open_ = {
        number: list(tried(are_numbers=number in table.numbers))
        for number, name in enumerate(table.columns)
        if table.types[number] == "VARCHAR" and name not in declared and not table.is_typed
    }
    kinds = _inferred(table, open_)
    return [
        Column(name, _typed(table, place, declared.get(name) or kinds.get(number, TEXT)))
        for number, (name, place) in enumerate(
            zip(table.columns, cells(len(table.columns)), strict=True)
        )
    ]


def _as_text(table: Table, number: int) -> None:
    table.engine.run(f"ALTER TABLE {table.name} ALTER c{number} TYPE VARCHAR")
    table.types = (*table.types[:number], "VARCHAR", *table.types[number + 1 :])


def _inferred(table: Table, open_: dict[int, list[str]]) -> dict[int, str]:
    """Return the first kind that fits every filled cell, for each column that has one."""
    sample = f"(SELECT * FROM {table.good} LIMIT {SAMPLE_ROWS})"
    _narrow(table, sample, open_)
    has_cells = _narrow(table, table.good, open_)
    return {number: kinds[0] for number, kinds in open_.items() if kinds and has_cells[number]}


def _narrow(table: Table, rows: str, open_: dict[int, list[str]]) -> dict[int, bool]:
    """Drop each column's kinds before the first that fits `rows`; return which have cells."""
    has_cells: dict[int, bool] = {}
    asked = [number for number, kinds in open_.items() if kinds]
    while asked:
        again = []
        for number, fit, has in _answers(table, rows, open_, asked):
            has_cells[number] = has
            if fit is False:
                open_[number].pop(0)
                again += [number] if open_[number] else []
        asked = again
    return has_cells


def _answers(
    table: Table, rows: str, open_: Mapping[int, Sequence[str]], asked: Sequence[int]
) -> Iterator[tuple[int, bool | None, bool]]:
    """Yield for each column whether its first kind fits all its cells, and whether it has any."""
    # Planning time grows with the square of a statement's expressions.
    for start in range(0, len(asked), ASKED_AT_ONCE):
        part = asked[start : start + ASKED_AT_ONCE]
        tests = (
            f"bool_and({fits(open_[number][0], f'c{number}', declared=False)}), "
            f"count({filled(f'c{number}')}) > 0"
            for number in part
        )
        answers = table.engine.one(f"SELECT {', '.join(tests)} FROM {rows}")
        yield from zip(part, answers[::2], answers[1::2], strict=True)


def _typed(table: Table, place: str, kind: str) -> str:
    if kind == TEXT:
        return place
    cell = filled(place)
    if kind == "decimal":
        return f"CAST({cell} AS {_decimal(table, place)})"
    if kind == "timestamp" and _any(table, _HAS_ZONE.replace("{0}", place)):
        kind = "instant"
    if kind == "boolean":
        cell = f"lower({cell})"
    return f"CAST({cell} AS {KINDS[kind].type})"


def _decimal(table: Table, place: str) -> str:
    """Return the smallest decimal type that holds every cell exactly."""
    whole, part = table.engine.one(
        f"SELECT coalesce(max(length(split_part(ltrim({place}, '+-'), '.', 1))), 1), "
        f"coalesce(max(length(split_part({place}, '.', 2))), 0) FROM {table.good}"
    )
    return f"DECIMAL({18 if whole + part <= 18 else 38}, {part})"


def _any(table: Table, test: str) -> bool:
    (found,) = table.engine.one(f"SELECT coalesce(bool_or({test}), false) FROM {table.good}")
    return bool(found)


def check_key(table: Table, key: Sequence[str], shown: str) -> None:
    """Leave out the rows without a value for `key`. Raises SourceFailed for an unknown column."""
    for name in key:
        if name not in table.columns:
            text = unknown_name("column", name, table.columns)
            raise SourceFailed(f"{shown}: key {name!r} {text}", permanent=True)
        number = table.columns.index(name)
        missing = f"c{number} IS NULL"
        if table.types[number] == "VARCHAR":
            missing = f"{filled(f'c{number}')} IS NULL"
        table.leave_out(missing, number, f"c{number}::VARCHAR", "the key has no value")
