"""Values of settings that have names of their own, such as connections and brokers."""

import json
from typing import TypeVar

V = TypeVar("V")


class Named(dict[str, V]):
    """Values by name; immutable and hashable, as caches use settings as their key."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


def object_of(value: object) -> object:
    """Return the object in a variable's JSON; other values unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise ValueError('write JSON such as {"name": "value"}') from None
