"""What is stored of an action, read."""

import json
from collections.abc import Mapping
from typing import Any


def document_of(row: Mapping[str, Any]) -> Any:
    """Return an action's stored document; its text when it is broken."""
    try:
        return json.loads(row["document"])
    except ValueError:
        return row["document"]
