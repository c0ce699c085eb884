"""Changes between two documents of a small app, in words."""

from collections.abc import Collection, Mapping
from typing import Any

LONGEST_VALUE = 60


def changes_between(
    old: Mapping[str, Any], new: Mapping[str, Any], named: Collection[str] = ()
) -> list[str]:
    """Return one sentence for each difference of `new` from `old`; empty if they are equal.

    What is beneath the keys `named` is reported by its name.
    """
    changes = []
    for key in sorted(key for key in {*old, *new} if old.get(key) != new.get(key)):
        before, after = old.get(key), new.get(key)
        if key in named:
            its, now = before or {}, after or {}
            names = sorted(name for name in {*its, *now} if its.get(name) != now.get(name))
            changes += [
                f'{key.removesuffix("s")} "{name}" {_fate(its.get(name), now.get(name))}'
                for name in names
            ]
        elif (shown := _short(after)) is None:
            changes.append(f"{key} {_fate(before, after)}")
        else:
            was = _short(before)
            changes.append(f"{key} {shown}" if was is None else f"{key} {shown}, was {was}")
    return changes


def _fate(before: object, after: object) -> str:
    if before is None:
        return "added"
    return "removed" if after is None else "changed"


def _short(value: object) -> str | None:
    """Return a value as one short text; None for none, a long one, and one that has parts."""
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    is_long = len(shown) > LONGEST_VALUE or "\n" in shown
    return None if value is None or is_long or isinstance(value, dict | list) else shown
