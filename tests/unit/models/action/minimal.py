"""A valid, minimal action whose keys a test changes, and the instant at which it is read."""

from datetime import UTC, datetime
from typing import Any

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def action(**changes: Any) -> dict[str, Any]:
    """Return a valid, minimal action with `changes`; a key set to `...` is removed."""
    document = {"name": "a", "operations": {"maintenance": True}, "when": {"every": "PT1H"}}
    return {key: value for key, value in {**document, **changes}.items() if value is not ...}
