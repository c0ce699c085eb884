"""Changes between two documents of a small app, in words."""

from collections.abc import Mapping
from typing import Any

# Keys whose entries are reported by name.
NAMED = {
    "domains": "domain",
    "templates": "template",
    "calendars": "calendar",
    "settings": "setting",
    "design": "design",
    "permissions": "permission",
}
LONGEST_VALUE = 60


def changes_between(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return one sentence for each difference of `new` from `old`; empty if they are equal."""
    changes = []
    for key in sorted({*old, *new}):
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        is_named = isinstance(before or {}, Mapping) and isinstance(after or {}, Mapping)
        if key in NAMED and is_named:
            changes += _named(NAMED[key], before or {}, after or {})
        else:
            changes.append(_plain(key, before, after))
    return changes


def _named(what: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return [
        f'{what} "{name}" {_fate(name, old, new)}'
        for name in sorted({*old, *new})
        if name not in old or name not in new or old[name] != new[name]
    ]


def _fate(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    if name not in old:
        return "added"
    return "changed" if name in new else "removed"


def _plain(key: str, old: object, new: object) -> str:
    if new is None:
        return f"{key} removed"
    shown = str(new).lower() if isinstance(new, bool) else str(new)
    if isinstance(new, dict | list) or len(shown) > LONGEST_VALUE or "\n" in shown:
        return f"{key} {'added' if old is None else 'changed'}"
    was = "" if old is None else f", was {str(old).lower() if isinstance(old, bool) else old}"
    return f"{key} {shown}{was if len(was) <= LONGEST_VALUE else ''}"
