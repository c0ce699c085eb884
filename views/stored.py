"""Read the stored document of an action."""

from collections.abc import Mapping
from typing import Any

from models.stored import document_in


def document_of(row: Mapping[str, Any]) -> Any:
    """Return an action's stored document; its text if it is broken."""
    read = document_in(row["document"])
    return row["document"] if read is None else read
