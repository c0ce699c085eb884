"""The kind of each column of a table: declared, given by the format, or inferred from its cells.

A kind never alters a cell: one is inferred as a number, a date, … only if that is written back in
the same form, so `007`, `1e5`, `NaN` and integers of twenty digits stay text. DuckDB's own reader
would make 2 of `1.5` in a column of integers, and null of what is no instant. The SQL is DuckDB's;
`{0}` is the cell as text, null if it is empty.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from data.failures import SourceFailed
from data.importing.tables import MARK, Table, cell

TEXT = "text"
SAMPLE_ROWS = 1_000
# Planning time grows with the square of a statement's expressions.
ASKED_AT_ONCE = 50
# More digits may exceed a 64-bit integer or a decimal's two parts.
_DECIMAL = r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,12})?"
_BARE_INSTANT = r"regexp_replace({0}, '(Z|\+00(:00)?)$', '')"
_HAS_ZONE = r"regexp_matches({0}, ':[0-9.]+ ?(Z|[+-][0-9]{2}(:?[0-9]{2})?)$')"


def _is_instant(text: str) -> str:
    # Fractions have many forms: .5, .500, .500000.
    whole = f"CASE WHEN contains({text}, '.') THEN rtrim(rtrim({text}, '0'), '.') ELSE {text} END"
    written = f"CAST(TRY_CAST({text} AS TIMESTAMP) AS VARCHAR)"
    return f"length({text}) >= 19 AND {written} = replace({whole}, 'T', ' ')"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind: its SQL type, and the tests of a filled cell when inferred and when declared."""

    type: str
    inferred: str
    declared: str


# In the order of tries; a kind that cannot be declared comes from an inferred one.
KINDS = {
    "integer": Kind(
        "BIGINT",
        "CAST(TRY_CAST({0} AS BIGINT) AS VARCHAR) = {0}",
        "regexp_full_match({0}, '[+-]?[0-9]+') AND TRY_CAST({0} AS BIGINT) IS NOT NULL",
    ),
    "decimal": Kind(
        "DECIMAL",
        f"regexp_full_match({{0}}, '{_DECIMAL}') AND NOT regexp_full_match({{0}}, '-[0.]+')",
        r"regexp_full_match({0}, '[+-]?[0-9]{1,26}(\.[0-9]{1,12})?')",
    ),
    "date": Kind(
        "DATE",
        "length({0}) = 10 AND CAST(TRY_CAST({0} AS DATE) AS VARCHAR) = {0}",
        "{0} LIKE '____-__-__' AND TRY_CAST({0} AS DATE) IS NOT NULL",
    ),
    "timestamp": Kind(
        "TIMESTAMP",
        _is_instant("{0}"),
        "length({0}) >= 10 AND TRY_CAST({0} AS TIMESTAMPTZ) IS NOT NULL",
    ),
    "instant": Kind(
        "TIMESTAMPTZ",
        r"regexp_matches({0}, '(Z|\+00(:00)?)$') AND " + _is_instant(_BARE_INSTANT),
        "false",
    ),
    "boolean": Kind("BOOLEAN", "{0} IN ('true', 'false')", "TRY_CAST({0} AS BOOLEAN) IS NOT NULL"),
    # Inferred only if the format marks the cells as numbers.
    "number": Kind(
        "DOUBLE",
        # A DOUBLE does not hold every integer above 2^53.
        "isfinite(TRY_CAST({0} AS DOUBLE)) AND (NOT regexp_full_match({0}, '-?[0-9]+')"
        " OR abs(TRY_CAST({0} AS DOUBLE)) <= 9007199254740992)",
        "isfinite(TRY_CAST({0} AS DOUBLE)) AND NOT contains({0}, '_')",
    ),
}


def check_types(table: Table, declared: Mapping[str, str], shown: str) -> None:
    """Leave out the rows whose cells do not match their declared kind. Raises SourceFailed."""
    for name, kind in declared.items():
        _check_known(table, name, f"{shown}: column {name!r}")
        if table.types[name] != "VARCHAR":
            table.engine.run(f"ALTER TABLE {table.name} ALTER {cell(name)} TYPE VARCHAR")
            table.types[name] = "VARCHAR"
        if kind != TEXT:
            wrong = f"NOT {_fits(KINDS[kind].declared, cell(name))}"
            table.reject(wrong, name, cell(name), f"is not a valid {kind}")


def check_key(table: Table, key: Sequence[str], shown: str) -> None:
    """Leave out the rows without a value for `key`. Raises SourceFailed for an unknown column."""
    for name in key:
        _check_known(table, name, f"{shown}: key {name!r}")
        text = f"CAST({cell(name)} AS VARCHAR)"
        table.reject(f"coalesce({text}, '') = ''", name, text, "the key has no value")


def _check_known(table: Table, name: str, shown: str) -> None:
    if name not in table.types:
        # Most imports need no advice, and no pydantic.
        from models.hints import unknown_name

        raise SourceFailed(f"{shown} {unknown_name('column', name, table.types)}", permanent=True)


def typed_cells(table: Table, declared: Mapping[str, str]) -> dict[str, str]:
    """Return SQL for the typed cells of each column of `table`."""
    kinds = dict.fromkeys(table.types, TEXT) | dict(declared)
    if not table.is_typed:
        kinds |= _inferred(table, [name for name in table.types if name not in declared])
    return {name: _typed(table, cell(name), kind) for name, kind in kinds.items()}


def _inferred(table: Table, names: Sequence[str]) -> dict[str, str]:
    """Return the kind of each column that has filled cells, all of which fit it."""
    found = _first_that_fit(table, names, f"(FROM {table.good} LIMIT {SAMPLE_ROWS})")
    # A column that is text in the sample stays text.
    likely = {name: kind for name, kind in found.items() if kind != TEXT}
    fitting = _that_fit(table, likely)
    others = [name for name in names if found.get(name) != TEXT and name not in fitting]
    return found | _first_that_fit(table, others, table.good)


def _first_that_fit(table: Table, names: Sequence[str], rows: str) -> dict[str, str]:
    """Return the first kind that fits `rows`, for each column that has filled cells."""
    if not names:
        return {}
    tests = ", ".join(
        f"bool_and(coalesce({kind.inferred.replace('{0}', 'cell')}, false))"
        for kind in KINDS.values()
    )
    answers = table.engine.run(
        f"SELECT name, {tests} FROM (UNPIVOT (SELECT {', '.join(map(cell, names))} FROM {rows}) "
        "ON COLUMNS(*) INTO NAME name VALUE cell) WHERE cell <> '' GROUP BY name"
    )
    found = {}
    for marked, *fits in answers:
        name = marked.removeprefix(MARK)
        kinds = (kind for kind, fit in zip(KINDS, fits, strict=True) if fit)
        allowed = (kind for kind in kinds if kind != "number" or name in table.numbers)
        found[name] = next(allowed, TEXT)
    return found


def _that_fit(table: Table, kinds: Mapping[str, str]) -> set[str]:
    """Return the columns of which every filled cell fits its kind."""
    found: set[str] = set()
    names = list(kinds)
    for start in range(0, len(names), ASKED_AT_ONCE):
        part = names[start : start + ASKED_AT_ONCE]
        tests = (f"bool_and({_fits(KINDS[kinds[name]].inferred, cell(name))})" for name in part)
        answers = table.engine.one(f"SELECT {', '.join(tests)} FROM {table.good}")
        found |= {name for name, fits in zip(part, answers, strict=True) if fits}
    return found


def _fits(test: str, place: str) -> str:
    """Return SQL for whether a cell passes the test of a kind; true for empty ones."""
    # Not str.format: the regular expressions contain braces.
    filled = f"nullif({place}, '')"
    return f"({filled} IS NULL OR coalesce({test.replace('{0}', filled)}, false))"


def _typed(table: Table, place: str, kind: str) -> str:
    if kind == TEXT:
        return place
    type_ = KINDS[kind].type
    if kind == "decimal":
        type_ = _decimal(table, place)
    if kind == "timestamp":
        has_zone = f"SELECT bool_or({_HAS_ZONE.replace('{0}', place)}) FROM {table.good}"
        type_ = "TIMESTAMPTZ" if table.engine.one(has_zone)[0] else type_
    return f"CAST(nullif({place}, '') AS {type_})"


def _decimal(table: Table, place: str) -> str:
    """Return the smallest decimal type that holds every cell exactly."""
    whole, part = table.engine.one(
        f"SELECT coalesce(max(length(split_part(ltrim({place}, '+-'), '.', 1))), 1), "
        f"coalesce(max(length(split_part({place}, '.', 2))), 0) FROM {table.good}"
    )
    return f"DECIMAL({18 if whole + part <= 18 else 38}, {part})"
