"""User-defined settings of a small app: a JSON object that templates and steps can read."""

from types import MappingProxyType
from typing import Any

# The owner of the actions that every small app gets by itself.
GIVEN_OWNER = "minutebook"


def read_only(value: Any) -> Any:
    """Return a JSON value as immutable mappings and tuples."""
    if isinstance(value, dict):
        return MappingProxyType({key: read_only(item) for key, item in value.items()})
    if isinstance(value, list):
        return tuple(read_only(item) for item in value)
    return value
