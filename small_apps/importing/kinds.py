"""Kinds of columns: told by every cell of a column, or declared; no cell is altered by its kind.

A cell counts as a number, a date, … only in the one way in which that is written back: `007`,
`1e5`, `NaN` and integers of twenty digits stay text. SQL is for DuckDB; `{0}` is the cell, as
text, null when it is empty.
"""

from dataclasses import dataclass

# More digits than that fit neither a 64-bit integer nor a decimal's two parts for certain.
_DECIMAL = r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,12})?"
_BARE_INSTANT = r"regexp_replace({0}, '(Z|\+00(:00)?)$', '')"


def _is_instant(cell: str) -> str:
    # Ends of fractions are written in many ways: .5, .500, .500000.
    whole = f"CASE WHEN contains({cell}, '.') THEN rtrim(rtrim({cell}, '0'), '.') ELSE {cell} END"
    written = f"CAST(TRY_CAST({cell} AS TIMESTAMP) AS VARCHAR)"
    return f"length({cell}) >= 19 AND {written} = replace({whole}, 'T', ' ')"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind: its type, what it asks of each filled cell, and what it asks where it is declared."""

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
        # Above 2^53 not every integer has a place of its own.
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
DECLARABLE = ("text", "integer", "decimal", "number", "date", "timestamp", "boolean")
# In this order a column is tried; `number` only where the format itself says it is one.
_TRIED = ("integer", "decimal", "date", "timestamp", "instant", "boolean")
_TRIED_NUMBERS = ("integer", "decimal", "number")


def tried(*, are_numbers: bool) -> tuple[str, ...]:
    """Return the kinds that an undeclared column may be, in order; text when it is none."""
    return _TRIED_NUMBERS if are_numbers else _TRIED


def filled(column: str) -> str:
    """Return SQL for a cell of `column`, null when it is empty."""
    return f"nullif({column}, '')"


def fits(kind: str, column: str, *, declared: bool) -> str:
    """Return SQL: whether a cell of `column` may be of `kind`; true for empty cells."""
    if kind == TEXT:
        return "true"
    rule = KINDS[kind].declared if declared else KINDS[kind].inferred
    # Not str.format: the rules' regular expressions have braces of their own.
    shown = rule.replace("{0}", filled(column))
    return f"({filled(column)} IS NULL OR coalesce({shown}, false))"
