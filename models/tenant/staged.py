"""Design and permission documents of a small app: free JSON, staged and published like data."""

import json
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from models.document import as_object
from models.values import FreeJson

KINDS = ("design", "permissions")
LONGEST = 100_000
MOST = 200


def _short(document: dict[str, Any]) -> dict[str, Any]:
    length = len(json.dumps(document, ensure_ascii=False, default=str))
    if length > LONGEST:
        raise ValueError(f"is too long ({length} characters of JSON); write at most {LONGEST}")
    return document


def _few(documents: dict[str, Any]) -> dict[str, Any]:
    if len(documents) > MOST:
        raise ValueError(f"has {len(documents)} documents; write at most {MOST}")
    return documents


JsonDocument = Annotated[dict[str, FreeJson], BeforeValidator(as_object), AfterValidator(_short)]
Documents = Annotated[dict[str, JsonDocument], BeforeValidator(as_object), AfterValidator(_few)]


def written(document: dict[str, Any]) -> str:
    """Return the document as stored and compared: compact JSON with sorted keys."""
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
