"""Design and permission documents of a small app: free JSON, staged and published like data."""

import json
from typing import Annotated, Any

from pydantic import BeforeValidator

from models.document import as_object
from models.tenant.document import JsonDocument

KINDS = ("design", "permissions")


Documents = Annotated[dict[str, JsonDocument], BeforeValidator(as_object)]


def written(document: dict[str, Any]) -> str:
    """Return the document as stored and compared: compact JSON with sorted keys."""
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
