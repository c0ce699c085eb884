"""Changes of actions in words."""

from collections import Counter
from collections.abc import Iterator

from cli.texts.actions import described, valid
from models.values import counted
from views.changes import (
    Changed,
    Changes,
    Checked,
    DeletedAction,
    DeletedActions,
    Renamed,
    Switched,
    SwitchedAll,
)

# How many names and warnings are printed; `--json` has all.
MOST_NAMED = 100
MOST_WARNINGS = 10
KINDS = ("created", "changed", "unchanged")


def _changes(made: Changes, *, summary: bool = True) -> Iterator[str]:
    for one in made.root:
        if one.upcoming is not None:
            yield f"{one.change} {one.name} ({one.uid}), revision {one.revision}"
            yield from described(one.upcoming, one.warnings)
    if summary:
        counts = Counter(one.change for one in made.root)
        shown = [*KINDS, *(["deleted"] if counts["deleted"] else [])]
        yield ", ".join(f"{kind} {counts[kind]}" for kind in shown)
        yield from _warnings(made)


def _warnings(made: Changes) -> Iterator[str]:
    """Yield the first warnings of the actions whose details are not shown."""
    found = [
        f"{one.name}: {warning}"
        for one in made.root
        if one.upcoming is None
        for warning in one.warnings
    ]
    yield from (f"  warning: {text}" for text in found[:MOST_WARNINGS])
    if len(found) > MOST_WARNINGS:
        yield f"  … and {len(found) - MOST_WARNINGS} more warnings; --verbose shows them"


def _checked(made: Checked) -> Iterator[str]:
    for one in made.root:
        yield from valid(one)


def _changed(one: Changed) -> Iterator[str]:
    yield f"{one.change} {one.name} ({one.uid}), revision {one.revision}"


def _renamed(one: Renamed) -> Iterator[str]:
    if one.change == "unchanged":
        yield f"{one.name} has that name already"
    else:
        yield f"renamed {one.old_name} to {one.name} ({one.uid}), revision {one.revision}"


def _switched(one: Switched) -> Iterator[str]:
    if one.change == "unchanged":
        yield f"{one.name} is already {'active' if one.active else 'paused'}"
    else:
        yield f"{'resumed' if one.active else 'paused'} {one.name} ({one.uid})"


def _switched_all(made: SwitchedAll, *, owner: str, word: str) -> Iterator[str]:
    done = [one for one in made.root if isinstance(one, Switched)]
    changed = sum(one.change == "changed" for one in done)
    yield f"{word} {changed} of {counted(len(made.root), 'action')} of {owner}"


def _deleted(one: DeletedAction) -> Iterator[str]:
    yield f"deleted {one.name} ({one.uid}), {counted(one.cancelled, 'operation')} cancelled"


def _deleted_owned(one: DeletedActions) -> Iterator[str]:
    count = len(one.deleted)
    cancelled = counted(one.cancelled, "operation")
    yield f"deleted {counted(count, 'action')} of {one.owner}, {cancelled} cancelled"
    yield from (f"  {name}" for name in one.deleted[:MOST_NAMED])
    if count > MOST_NAMED:
        yield f"  … and {count - MOST_NAMED} more"


FORMS = {
    Changes: _changes,
    Changed: _changed,
    Checked: _checked,
    Renamed: _renamed,
    Switched: _switched,
    SwitchedAll: _switched_all,
    DeletedAction: _deleted,
    DeletedActions: _deleted_owned,
}
