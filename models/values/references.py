"""References to secrets: documents name a secret, and never hold it."""

import re

_REFERENCE = re.compile(r"(?P<kind>env|file):(?P<name>.+)", re.DOTALL)
_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")


def is_reference(value: object) -> bool:
    """Return whether `value` refers to a secret: `env:NAME` or `file:PATH`."""
    return isinstance(value, str) and _REFERENCE.fullmatch(value) is not None


def parse_reference(value: object) -> str:
    """Return a well-formed reference; raises ValueError for anything else."""
    remedy = 'write "env:NAME" or "file:/absolute/path"'
    found = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(remedy)
    kind, name = found.group("kind", "name")
    if kind == "env" and _VARIABLE.fullmatch(name) is None:
        raise ValueError('env: needs the name of a variable, such as "env:WAREHOUSE_TOKEN"')
    if kind == "file" and (not name.startswith("/") or not name.isprintable()):
        raise ValueError('file: needs an absolute path; write one such as "file:/run/token"')
    return str(value)
