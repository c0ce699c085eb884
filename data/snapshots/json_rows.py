"""Rows of snapshots as JSON."""

import json
import math
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from models.values import instant_or_dash

Row = Mapping[str, Any]


def json_line(row: Row) -> str:
    """Return a row as one line of JSON."""
    return json.dumps(_finite(row), ensure_ascii=False, default=json_value)


def _finite(value: object) -> object:
    """Return the value with null for the numbers that JSON does not have."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case list():
            return [_finite(item) for item in value]
        case _:
            return value


def json_value(value: object) -> object:
    """Return a JSON value for an exact number, an instant or a date; text for another value."""
    match value:
        case Decimal():
            return _number(value)
        case datetime():
            return instant_or_dash(value) if value.tzinfo is not None else value.isoformat()
        case date() | time():
            return value.isoformat()
        case _:
            return str(value)


def _number(value: Decimal) -> int | float | str:
    """Return the number, as text if a JSON reader would round it."""
    if value == value.to_integral_value():
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else str(value)
