"""Kinds of columns, inferred from every cell or declared; a kind never alters a cell.

A cell is inferred as a number, a date, … only if that is written back in the same form: `007`,
`1e5`, `NaN` and integers of twenty digits stay text. The SQL is DuckDB's; `{0}` is the cell as
text, null if it is empty.
"""

from dataclasses import dataclass

# More digits may exceed a 64-bit integer or a decimal's two parts.
_DECIMAL = r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,12})?"
_BARE_INSTANT = r"regexp_replace({0}, '(Z|\+00(:00)?)$', '')"


def _is_instant(cell: str) -> str:
    # Fractions have many forms: .5, .500, .500000.
    whole = f"CASE WHEN contains({cell}, '.') THEN rtrim(rtrim({cell}, '0'), '.') ELSE {cell} END"
    written = f"CAST(TRY_CAST({cell} AS TIMESTAMP) AS VARCHAR)"
    return f"length({cell}) >= 19 AND {written} = replace({whole}, 'T', ' ')"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind: its SQL type, and the tests of a filled cell when inferred and when declared."""

    type: str
    inferred: str
    declared: str


KINDS = {
    "integer": Kind(
        "BIGINT",
        "CAST(TRY_CAST({0} AS BIGINT) AS VARCHAR) = {0}",
        "regexp_full_match({0}, '[+-]?[0-9]+') AND TRY_CAST({0} AS BIGINT) IS NOT NULL",
    ),
    "decimal": Kind(
        "DECIMAL",
        "regexp_full_match({0}, '" + _DECIMAL + "') AND NOT regexp_full_match({0}, '-[0.]+')",
        r"regexp_full_match({0}, '[+-]?[0-9]{1,26}(\.[0-9]{1,12})?')",
    ),
    "number": Kind(
        "DOUBLE",
        # A DOUBLE does not hold every integer above 2^53.
        "isfinite(TRY_CAST({0} AS DOUBLE)) AND (NOT regexp_full_match({0}, '-?[0-9]+')"
        " OR abs(TRY_CAST({0} AS DOUBLE)) <= 9007199254740992)",
        "isfinite(TRY_CAST({0} AS DOUBLE)) AND NOT contains({0}, '_')",
    ),
    "date": Kind(
        "DATE",
        "length({0}) = 10 AND CAST(TRY_CAST({0} AS DATE) AS VARCHAR) = {0}",
        "regexp_full_match({0}, '[0-9]{4}-[0-9]{2}-[0-9]{2}')"
        " AND TRY_CAST({0} AS DATE) IS NOT NULL",
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
    "boolean": Kind(
        "BOOLEAN",
        "{0} IN ('true', 'false')",
        "lower({0}) IN ('true', 'false', '1', '0')",
    ),
}
TEXT = "text"
# The order of tries; `number` only if the format marks the cells as numbers.
_TRIED = ("integer", "decimal", "date", "timestamp", "instant", "boolean")
_TRIED_NUMBERS = ("integer", "decimal", "number")


def tried(*, are_numbers: bool) -> tuple[str, ...]:
    """Return the kinds to try for an undeclared column, in order; text if none fits."""
    return _TRIED_NUMBERS if are_numbers else _TRIED


def filled(column: str) -> str:
    """Return SQL for a cell of `column`, null if it is empty."""
    return f"nullif({column}, '')"


def fits(kind: str, column: str, *, declared: bool) -> str:
    """Return SQL for whether a cell of `column` fits `kind`; true for empty cells."""
    if kind == TEXT:
        return "true"
    rule = KINDS[kind].declared if declared else KINDS[kind].inferred
    # Not str.format: the regular expressions contain braces.
    shown = rule.replace("{0}", filled(column))
    return f"({filled(column)} IS NULL OR coalesce({shown}, false))"
