"""Choice of a domain's key figures for a short report, by the names of columns.

Keys, codes and coordinates are skipped. Prices and rates show their mean, because their sum means
nothing.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
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
_RATES = frozenset(
    (
        "age", "average", "avg", "discount", "level", "mean", "median", "pct", "percent",
        "percentage", "price", "rate", "rating", "ratio", "score", "share", "temp", "temperature",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """One numeric column: its sum or mean, and the change since the last summary."""

    column: str
    value: float
    is_mean: bool
    change: float | None


def key_figures(figures: Mapping[str, Any], before: Mapping[str, float]) -> Iterator[KeyFigure]:
    """Yield the first four key figures, in the order of their columns.

    `before` holds the values of the last summary, by column.
    """
    columns: Mapping[str, Any] = figures.get("columns", {})
    for column, stats in islice(filter(_is_key_figure, columns.items()), MOST_FIGURES):
        is_mean = not _RATES.isdisjoint(_words(column))
        value = stats["sum"] / stats["filled"] if is_mean else stats["sum"]
        change = value - before[column] if column in before else None
        yield KeyFigure(column, value, is_mean, change)


def _is_key_figure(of_column: tuple[str, Mapping[str, Any]]) -> bool:
    column, stats = of_column
    is_key = not _KEYS.isdisjoint(_words(column)[-1:])
    return bool(stats["filled"]) and stats["sum"] is not None and not is_key


def _words(column: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(column)]
