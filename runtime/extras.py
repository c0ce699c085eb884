"""The optional parts of an installation, such as `data`, and which of them this process has."""

from collections.abc import Collection, Mapping
from functools import cache
from importlib.util import find_spec

from runtime.plug_ins import plug_ins

HOW_TO_INSTALL = "docs/how-to/install.md#extras"


@cache
def extras() -> Mapping[str, tuple[str, ...]]:
    """Return the extras of steps, and the modules that each brings."""
    return {name: modules for one in plug_ins() for name, modules in one.extras.items()}


@cache
def is_installed(extra: str) -> bool:
    """Return whether this process can import all that an extra brings."""
    return all(find_spec(module) is not None for module in extras()[extra])


def missing_here(elsewhere: Collection[str] = ()) -> tuple[str, ...]:
    """Return the extras that this process lacks, but for those that workers have `elsewhere`."""
    return tuple(one for one in extras() if one not in elsewhere and not is_installed(one))
