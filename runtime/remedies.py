"""What to write instead of a wrong setting, for each error of pydantic."""

from pydantic_core import ErrorDetails

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
