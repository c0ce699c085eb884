"""The optional parts of an installation, such as `data`, and which of them this process has."""

from collections.abc import Collection
from functools import cache
from importlib.util import find_spec

HOW_TO_INSTALL = "docs/how-to/install.md#extras"
# The extras of steps, and the modules that each brings.
EXTRAS = {"data": ("duckdb", "fsspec"), "mail": ("matplotlib",)}


@cache
def is_installed(extra: str) -> bool:
    """Return whether this process can import all that an extra brings."""
    return all(find_spec(module) is not None for module in EXTRAS[extra])


def missing_here(elsewhere: Collection[str] = ()) -> tuple[str, ...]:
    """Return the extras that this process lacks, but for those that workers have `elsewhere`."""
    return tuple(one for one in EXTRAS if one not in elsewhere and not is_installed(one))
