"""What became of the entries of another scheduler, by their names."""

from collections.abc import Mapping
from typing import Any

from interop.outcomes import Outcome


def document(found: Mapping[str, Outcome], name: str) -> dict[str, Any]:
    """Return the document of an entry that became an action."""
    made = found[name].document
    assert made is not None, found[name]
    return made


def names(found: Mapping[str, Outcome], kind: str) -> set[str]:
    """Return the names of the entries with that outcome."""
    return {name for name, one in found.items() if one.kind == kind}
