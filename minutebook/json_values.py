"""Python's values as an action's JSON holds them, with a list of what it cannot hold."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator
from typing import Any

# What Minutebook reads: a text without these characters, a number below this one.
UNREADABLE = {"\0", *map(chr, range(0xD800, 0xE000))}
LARGEST = 2**63
DEEPEST = 20
LONGEST_SHOWN = 200


def said(part: str, value: Any, unsaid: list[str], depth: int = 0) -> Any:
    """Return a value as JSON holds it; add what no action can hold to `unsaid`."""
    if depth < DEEPEST and isinstance(value, dict) and all(map(_is_key, value)):
        return {
            _key(key): said(f"{part}.{key}", one, unsaid, depth + 1) for key, one in value.items()
        }
    if depth < DEEPEST and isinstance(value, (list, tuple, range)):
        pairs = enumerate(value)
        return [said(f"{part}[{number}]", one, unsaid, depth + 1) for number, one in pairs]
    if _is_simple(value):
        return value
    if part == "options.expires" and isinstance(value, dt.timedelta):
        return value.total_seconds()
    beyond = " (beyond 2**63 - 1)" if isinstance(value, int) else ""
    unsaid.append(f"{part}: {shown(value)}{beyond}")
    return None


def altered(part: str, value: Any, depth: int = 0) -> Iterator[str]:
    """Yield which values JSON holds as others: tuples, keys that are no texts, and subclasses."""
    if isinstance(value, dict):
        yield from (f"{part}: the key {shown(key)}" for key in value if type(key) is not str)
        inner = [(f"{part}.{key}", one) for key, one in value.items()]
    elif isinstance(value, (list, tuple, range)):
        inner = [(f"{part}[{number}]", one) for number, one in enumerate(value)]
    else:
        inner = []
    if value is not None and type(value) not in (dict, list, str, int, float, bool):
        yield f"{part}: {shown(value)}"
    for place, one in inner if depth < DEEPEST else ():
        yield from altered(place, one, depth + 1)


def _is_simple(value: Any) -> bool:
    if isinstance(value, str):
        return UNREADABLE.isdisjoint(value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return abs(value) < LARGEST
    return value is None


def _is_key(key: Any) -> bool:
    return _is_simple(key) and (not isinstance(key, str) or len(key) < LONGEST_SHOWN)


def _key(key: Any) -> str:
    """Return a key as Python's JSON writes it: the key None is `null`."""
    return key if isinstance(key, str) else json.dumps(key)


def shown(value: Any) -> str:
    """Return the beginning of a value's repr, or its class if that raises an error."""
    try:
        text = repr(value)
    except Exception:  # a user's __repr__
        text = f"a {type(value).__name__}"
    return "".join(one if one.isprintable() else " " for one in text[:LONGEST_SHOWN])
