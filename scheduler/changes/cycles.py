"""Refuse actions that would depend on themselves."""

import json
from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa

from models.errors import InvalidAction, Problem
from models.store import actions

MOST_NAMED = 6


def check_cycles(
    connection: sa.Connection, small_app_id: int, new: Mapping[str, str | None]
) -> None:
    """Raise InvalidAction if these changes made an action depend on itself.

    `new` has the action whose ends make each of the changed ones due, by its name.
    """
    if not any(new.values()):
        # A new cycle leads through a new dependency, or a new name of an action with one.
        return
    stored = actions.watched_by_name(connection, small_app_id).items()
    watched = {name: other for name, other in stored if name not in new}
    watched |= {name: other for name, other in new.items() if other is not None}
    found = cycle(watched, new)
    if found is not None:
        raise InvalidAction([Problem("when", watched[found[0]], _remedy(found))])


def cycle(watched: Mapping[str, str], names: Iterable[str]) -> list[str] | None:
    """Return the first cycle that leads from one of `names` back to it, or None.

    `watched` has, for each action that depends on another, that other's name. The cycle begins
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


def _remedy(found: Sequence[str]) -> str:
    shown = [json.dumps(name, ensure_ascii=False) for name in found]
    if len(shown) > MOST_NAMED:
        shown = [*shown[: MOST_NAMED - 1], "…", shown[-1]]
    return f"makes a cycle, {' after '.join(shown)}; let one of them be due by the clock"
