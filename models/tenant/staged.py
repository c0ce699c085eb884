"""Design and permission documents of a small app: free JSON, staged and published like data."""

import json
from typing import Annotated, Any

from pydantic import BeforeValidator, JsonValue

KINDS = ("design", "permissions")
LONGEST = 100_000
MOST = 200


def _document(value: object) -> object:
    if not isinstance(value, dict):
        raise ValueError('write an object in { }, such as {"title": "Sales"}')
    try:
        length = len(written(value))
    except (TypeError, ValueError, RecursionError):
        raise ValueError(
            "is not JSON; use only texts, numbers, true, false, null, [ ] and { }"
        ) from None
    if length > LONGEST:
        raise ValueError(f"is too long ({length} characters of JSON); write at most {LONGEST}")
    return value


def _documents(value: object) -> object:
    if not isinstance(value, dict):
        raise ValueError('write an object in { }: one document for each name, {"start": { }}')
    if len(value) > MOST:
        raise ValueError(f"has {len(value)} documents; write at most {MOST}")
    return value


JsonDocument = Annotated[dict[str, JsonValue], BeforeValidator(_document)]
Documents = Annotated[dict[str, JsonDocument], BeforeValidator(_documents)]


def written(document: dict[str, Any]) -> str:
    """Return the document as stored and compared: compact JSON with sorted keys."""
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
