"""What to write instead of wrong settings, for each error of pydantic."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from runtime.sections import Section
from runtime.sections.variables import named_settings

# Errors hide the values of settings whose names end in one of these.
SECRETS = ("url", "secret", "webhook")

_REMEDIES = {
    "extra_forbidden": "is not a setting; remove it",
    "greater_than": "write a number above {gt:.15g}",
    "greater_than_equal": "write {ge:.15g} or more",
    "less_than_equal": "write {le:.15g} or less",
    "literal_error": "write {expected}",
    "int": "write a whole number",
    "float": "write a number",
    "bool": "write true or false",
    "string": "write a text",
    "path": "write a path",
    "tuple": "write names, separated by commas",
    "dict": 'write keys with their values, such as {{"warehouse": "env:WAREHOUSE_URL"}}',
    "model": "is a section; write its keys below it",
}


def remedy_of(fault: ErrorDetails) -> str:
    """Return what to write instead, or pydantic's own text for an unforeseen error."""
    kind = fault["type"]
    text = _REMEDIES.get(kind) or _REMEDIES.get(kind.partition("_")[0])
    if text is None:
        return fault["msg"].removeprefix("Value error, ")
    return text.format(**fault.get("ctx", {}))


def explained(error: ValidationError, names: Mapping[tuple[str, ...], str], file: Path) -> str:
    """Return a line for each fault: its variable in `names`, or its place in the file."""
    lines = []
    for fault in error.errors():
        path = tuple(str(part) for part in fault["loc"])
        # A contradiction between two keys has their section's path: name the variable that was set.
        where = (
            names.get(path[:3])
            or names.get(path[:2])
            or names.get(path[:1])
            or next((n for p, n in names.items() if p[: len(path)] == path), None)
        )
        if not path:
            # A contradiction between sections: the text names both.
            lines.append(remedy_of(fault))
            continue
        shown = (
            ""
            if path[-1].endswith(SECRETS)
            or path in named_settings()
            or path[:-1] in named_settings()
            # Perhaps a secret in a wrong place.
            or fault["type"] == "extra_forbidden"
            or isinstance(fault["input"], dict | Section)
            else f" {fault['input']!r}"
        )
        lines.append(f"{where or f'{file}: ' + '.'.join(path)}{shown}: {remedy_of(fault)}")
    return "\n".join(lines)
