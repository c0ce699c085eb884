"""Figures of a snapshot: its rows, and each column's filled cells, minimum, maximum and sum."""

import math
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from data.importing.duckdb_engine import Engine, quoted
from data.importing.read_parquet import NO_COLUMN

MOST_COLUMNS = 200
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DECIMAL", "FLOAT", "DOUBLE")


def figures_of(engine: Engine, file: Path) -> dict[str, Any]:
    """Return the figures of a snapshot, in one pass over its file, as JSON.

    `{"rows": 3, "columns": {name: {kind, filled, min, max, sum}}}`, for the first 200 columns.
    """
    described = engine.run("DESCRIBE SELECT * FROM read_parquet(?)", [str(file)])
    columns = [row[:2] for row in described if row[0] != NO_COLUMN][:MOST_COLUMNS]
    wanted = ["count(*)"]
    for name, type_ in columns:
        wanted += _asked(quoted(name), type_)
    rows, *answers = engine.one(f"SELECT {', '.join(wanted)} FROM read_parquet(?)", [str(file)])
    figures = {
        name: _figures(_kind(type_), answers[place * 4 : place * 4 + 4])
        for place, (name, type_) in enumerate(columns)
    }
    return {"rows": rows, "columns": figures}


def _kind(type_: str) -> str:
    """Return the displayed kind of a column's type."""
    if "[" in type_ or "(" in type_.removeprefix("DECIMAL("):
        return "text"
    if type_.removeprefix("U").startswith(_NUMBERS):
        return "number"
    if type_.startswith("TIMESTAMP"):
        return "timestamp"
    return {"DATE": "date", "BOOLEAN": "boolean"}.get(type_, "text")


def _asked(column: str, type_: str) -> list[str]:
    kind = _kind(type_)
    if kind == "text":
        return [f"count(nullif(CAST({column} AS VARCHAR), ''))", "NULL", "NULL", "NULL"]
    if kind == "boolean":
        return [f"count({column})", "NULL", "NULL", f"count_if({column})"]
    if kind != "number":
        return [f"count({column})", f"min({column})::VARCHAR", f"max({column})::VARCHAR", "NULL"]
    cell, total = column, f"sum({column})"
    if type_ in ("DOUBLE", "FLOAT"):
        # JSON has no infinite numbers and no NaN.
        cell = f"CASE WHEN isfinite({column}) THEN {column} END"
        total = f"fsum({cell})"
    elif type_.startswith(("DECIMAL(38", "HUGEINT", "UHUGEINT")):
        total = f"fsum({column}::DOUBLE)"
    return [f"count({cell})", f"min({cell})", f"max({cell})", total]


def _figures(kind: str, answers: list[Any]) -> dict[str, Any]:
    filled, least, most, total = answers
    if kind == "number" and least is None:
        kind = "text"
    named = {"min": least, "max": most, "sum": total}
    known = {key: plain(value) for key, value in named.items() if value is not None}
    return {"kind": kind, "filled": filled, **known}


def plain(value: object) -> int | float | str:
    """Return a number as JSON, whole ones as integers; instants and all else as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return value.isoformat() if isinstance(value, date | datetime) else str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return int(value) if value == int(value) else float(value)
