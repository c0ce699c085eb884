"""Key figures of a snapshot, gathered while its rows pass: rows, and each column's numbers."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

MOST_COLUMNS = 200
# No exponent, no leading zero: `007` and `1e5` are rather codes than amounts.
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,12})?", re.ASCII)
LARGEST = 10**18


def as_number(value: object) -> Decimal | None:
    """Return the number that a cell is or writes, exactly; None for anything else."""
    if isinstance(value, str):
        return Decimal(value) if _NUMBER.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return Decimal(repr(value)) if math.isfinite(value) and abs(value) < LARGEST else None


@dataclass(slots=True)
class _Column:
    filled: int = 0
    is_number: bool = True
    least: Decimal | None = None
    most: Decimal | None = None
    total: Decimal = Decimal(0)

    def add(self, value: object) -> None:
        if value is None or value == "":
            return
        self.filled += 1
        if not self.is_number:
            return
        number = as_number(value)
        if number is None:
            self.is_number = False
            return
        self.least = number if self.least is None else min(self.least, number)
        self.most = number if self.most is None else max(self.most, number)
        self.total += number

    def told(self) -> dict[str, Any]:
        if not self.is_number or self.least is None or self.most is None:
            return {"kind": "text", "filled": self.filled}
        return {
            "kind": "number",
            "filled": self.filled,
            "min": _plain(self.least),
            "max": _plain(self.most),
            "sum": _plain(self.total),
        }


@dataclass(slots=True)
class Figures:
    """Counts rows and columns; a column is a number's when each of its filled cells is one."""

    row_count: int = 0
    _columns: dict[str, _Column] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any]) -> None:
        """Count one row in."""
        self.row_count += 1
        for name, value in row.items():
            column = self._columns.get(name)
            if column is None:
                if len(self._columns) >= MOST_COLUMNS:
                    continue
                column = self._columns[name] = _Column()
            column.add(value)

    def told(self) -> dict[str, Any]:
        """Return the figures as JSON: `{"columns": {name: {kind, filled, min, max, sum}}}`."""
        return {"columns": {name: column.told() for name, column in self._columns.items()}}


def _plain(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)
