"""Figures of a snapshot: its rows, and the filled cells and the sum of each column of numbers."""

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

from data.importing.duckdb_engine import Engine, quoted
from data.importing.read_parquet import NO_COLUMN

MOST_COLUMNS = 200
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DECIMAL", "FLOAT", "DOUBLE")


def figures_of(engine: Engine, file: Path) -> dict[str, Any]:
    """Return the figures of a snapshot, in one pass over its file, as JSON.

    `{"rows": 3, "columns": {name: {filled, sum}}}`, for the first 200 columns of numbers.
    """
    described = engine.run("DESCRIBE SELECT * FROM read_parquet(?)", [str(file)])
    numbers = [row[:2] for row in described if row[0] != NO_COLUMN and _is_number(row[1])]
    columns = numbers[:MOST_COLUMNS]
    wanted = ["count(*)"]
    for name, type_ in columns:
        wanted += _asked(quoted(name), type_)
    rows, *answers = engine.one(f"SELECT {', '.join(wanted)} FROM read_parquet(?)", [str(file)])
    figures = {
        name: {"filled": answers[2 * place], "sum": _plain(answers[2 * place + 1])}
        for place, (name, _) in enumerate(columns)
    }
    return {"rows": rows, "columns": figures}


def _is_number(type_: str) -> bool:
    is_plain = "[" not in type_ and "(" not in type_.removeprefix("DECIMAL(")
    return is_plain and type_.removeprefix("U").startswith(_NUMBERS)


def _asked(column: str, type_: str) -> list[str]:
    cell, total = column, f"sum({column})"
    if type_ in ("DOUBLE", "FLOAT"):
        # JSON has no infinite numbers and no NaN.
        cell = f"CASE WHEN isfinite({column}) THEN {column} END"
        total = f"fsum({cell})"
    elif type_.startswith(("DECIMAL(38", "HUGEINT", "UHUGEINT")):
        total = f"fsum({column}::DOUBLE)"
    return [f"count({cell})", total]


def _plain(total: float | Decimal | None) -> float | None:
    """Return a sum as JSON, whole ones as integers; None without one, or beyond all numbers."""
    if total is None or not math.isfinite(total):
        return None
    return int(total) if total == int(total) else float(total)
