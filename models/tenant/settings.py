"""User-defined settings of a small app: a JSON object that templates and steps can read."""

import json
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import BeforeValidator

from models.values import FreeJson

# The owner of the actions that every small app gets by itself.
GIVEN_OWNER = "minutebook"

LONGEST_SETTINGS = 100_000


def _settings(value: object) -> object:
    if not isinstance(value, dict):
        raise ValueError('write an object in { }: {"currency": "EUR"}')
    length = len(json.dumps(value, default=str))
    if length > LONGEST_SETTINGS:
        raise ValueError(f"are {length} characters long; write at most {LONGEST_SETTINGS}")
    return value


AppSettings = Annotated[dict[str, FreeJson], BeforeValidator(_settings)]


def read_only(value: Any) -> Any:
    """Return a JSON value as immutable mappings and tuples."""
    if isinstance(value, dict):
        return MappingProxyType({key: read_only(item) for key, item in value.items()})
    if isinstance(value, list):
        return tuple(read_only(item) for item in value)
    return value
