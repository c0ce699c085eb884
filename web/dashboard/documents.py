"""Documents as pages show them: laid out, and compared."""

import difflib
import json
from typing import Any


def pretty(document: Any) -> str:
    """Return a document as text with one key in each line; a broken one as it is stored."""
    if isinstance(document, str):
        return document
    return json.dumps(document, indent=2, ensure_ascii=False)


def difference(before: Any, after: Any) -> list[tuple[str, str]]:
    """Return the lines of what changed from one document to another, as (`old`, line) and so on."""
    lines = difflib.unified_diff(pretty(before).splitlines(), pretty(after).splitlines(), n=2)
    kinds = {"-": "old", "+": "new", " ": "same"}
    return [
        (kinds[line[0]], line)
        for line in lines
        if line[0] in kinds and not line.startswith(("---", "+++"))
    ]
