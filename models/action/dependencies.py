"""Actions that are due by the ends of others never depend on themselves: pure."""

from collections.abc import Iterable, Mapping


def circle(watched: Mapping[str, str], names: Iterable[str]) -> list[str] | None:
    """Return the first circle that leads from one of `names` back to it, or None.

    `watched` has, for each action that depends on another, that other's name. The circle begins
    and ends with the same name. Each action is visited once, however many names there are.
    """
    harmless: set[str] = set()
    for first in names:
        way: dict[str, None] = {}
        name: str | None = first
        while name is not None and name not in way and name not in harmless:
            way[name] = None
            name = watched.get(name)
        if name is not None and name in way:
            found = list(way)
            return [*found[found.index(name) :], name]
        harmless |= way.keys()
    return None
