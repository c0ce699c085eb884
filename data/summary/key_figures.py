"""Choice of a domain's key figures for a short report, by column names and values.

Keys, codes and coordinates are skipped, and amounts come before flags. Prices and rates show their
mean, because their sum means nothing.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MOST_FIGURES = 4
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_KEYS = frozenset(
    (
        "code", "day", "hash", "hour", "id", "index", "key", "lat", "latitude", "lng", "lon",
        "longitude", "minute", "month", "no", "nr", "number", "phone", "postcode", "sku", "uuid",
        "week", "year", "zip",
    )
)  # fmt: skip
_MEASURES = frozenset(
    (
        "amount", "amounts", "balance", "budget", "cost", "costs", "count", "duration", "income",
        "margin", "orders", "paid", "profit", "qty", "quantity", "revenue", "sales", "sold",
        "spend", "stock", "total", "turnover", "units", "value", "visits", "volume",
    )
)  # fmt: skip
_RATES = frozenset(
    (
        "age", "average", "avg", "discount", "level", "mean", "median", "pct", "percent",
        "percentage", "price", "rate", "rating", "ratio", "score", "share", "temp", "temperature",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """One numeric column: its sum or mean, the change since the last summary, and the range."""

    column: str
    value: float
    is_mean: bool
    change: float | None
    mean: float
    least: float
    most: float


def key_figures(figures: Mapping[str, Any], before: Mapping[str, float]) -> Iterator[KeyFigure]:
    """Yield up to four key figures, the most important first.

    `before` holds the values of the last summary, by column.
    """
    columns: Mapping[str, Any] = figures.get("columns", {})
    found = [(name, stats) for name, stats in columns.items() if _is_candidate(name, stats)]
    # Sorting is stable: of equals, the leftmost column of the data is first.
    found.sort(key=lambda one: -_weight(*one))
    for column, stats in found[:MOST_FIGURES]:
        is_mean = bool(_RATES & set(_words(column)))
        mean = stats["sum"] / stats["filled"]
        value = mean if is_mean else stats["sum"]
        yield KeyFigure(
            column=column,
            value=value,
            is_mean=is_mean,
            change=value - before[column] if column in before else None,
            mean=mean,
            least=stats["min"],
            most=stats["max"],
        )


def _is_candidate(column: str, stats: Mapping[str, Any]) -> bool:
    values = [stats.get(name) for name in ("sum", "min", "max", "filled")]
    if stats.get("kind") != "number" or not all(isinstance(one, int | float) for one in values):
        return False
    words = _words(column)
    if not stats["filled"] or (words and words[-1] in _KEYS):
        return False
    return bool(_MEASURES & set(words)) or not _is_sequence(stats)


def _is_sequence(stats: Mapping[str, Any]) -> bool:
    """Return whether the column holds each number of a range once, as a key does."""
    least, most, count = stats["min"], stats["max"], stats["filled"]
    is_whole = all(float(one).is_integer() for one in (least, most, stats["sum"]))
    is_full = count > 2 and most - least + 1 == count
    return is_whole and is_full and 2 * stats["sum"] == count * (least + most)


def _weight(column: str, stats: Mapping[str, Any]) -> int:
    words = set(_words(column))
    weight = 2 * bool(words & _MEASURES) + bool(words & _RATES)
    is_flag: bool = (stats["min"], stats["max"]) in {(0, 1), (0, 0), (1, 1)}
    is_constant: bool = stats["min"] == stats["max"]
    return weight - 4 * is_flag - is_constant


def _words(column: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(column)]
