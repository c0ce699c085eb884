"""Design and permission documents of a small app: free JSON, staged and published like data."""

import json
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from models.document import as_object
from models.tenant.document import JsonDocument

KINDS = ("design", "permissions")
MOST = 200


def _few(documents: dict[str, Any]) -> dict[str, Any]:
    if len(documents) > MOST:
        raise ValueError(f"has {len(documents)} documents; write at most {MOST}")
    return documents


Documents = Annotated[dict[str, JsonDocument], BeforeValidator(as_object), AfterValidator(_few)]


def written(document: dict[str, Any]) -> str:
    """Return the document as stored and compared: compact JSON with sorted keys."""
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
