"""Changes of actions, and plans of changes, in words."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from cli.render import sentence
from cli.texts.upcoming import described, valid
from models.values import counted
from models.values.zones import in_zone
from views.changes import Changed, Changes, Checked, Renamed
from views.changes.deleting import DeletedAction, DeletedActions
from views.changes.plan import BusiestMinute, BusyMinute, ChangePlan, PlannedChange
from views.changes.switching import Switched, SwitchedAll
from views.words import instant

# How many names and warnings are printed; `--json` has all.
MOST_NAMED = 100
MOST_WARNINGS = 10
KINDS = ("created", "changed", "unchanged")
PLANNED = {"created": "would create", "changed": "would change", "unchanged": "would not change"}


def _changes(made: Changes, *, summary: bool = True) -> Iterator[str]:
    for one in made.root:
        if one.upcoming is not None:
            yield f"{one.change} {one.name} ({one.uid}), revision {one.revision}{_also(one)}"
            yield from described(one.upcoming, one.warnings)
    switched = [one for one in made.root if one.switched and one.upcoming is None]
    yield from (f"{one.switched} {one.name}" for one in switched[:MOST_NAMED])
    if len(switched) > MOST_NAMED:
        yield f"… and {len(switched) - MOST_NAMED} more; --json lists them"
    if summary:
        counts = Counter(one.change for one in made.root)
        shown = [*KINDS, *(["deleted"] if counts["deleted"] else [])]
        yield ", ".join(f"{kind} {counts[kind]}" for kind in shown)
        yield from _warnings(made)


def _also(one: Changed | PlannedChange) -> str:
    return f", {one.switched}" if one.switched else ""


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
        yield from (f"  warning: {text}" for text in one.warnings)


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


def _plan(plan: ChangePlan) -> Iterator[str]:
    for one in plan.actions:
        yield from _planned(one)
    for gone in plan.pruned:
        yield f"would delete {gone.name} ({gone.uid})"
    yield _load(plan.busiest_minute)


def _planned(one: PlannedChange) -> Iterator[str]:
    uid = f" ({one.uid})" if one.uid else ""
    yield f"{PLANNED[one.change]} {one.name}{uid}, revision {one.revision}{_also(one)}"
    if one.change == "changed":
        yield from _next("before", one.next_before, one.zone_before)
    if one.change != "unchanged":
        yield from _after(one)
    for at in one.sent_at_once:
        zone = one.zone_before
        yield f"  at once by the old rule  {in_zone(at, zone)} {zone}   {instant(at)}"
    if one.missed:
        yield f"  missed by the old rule   {one.missed}"
    yield from (f"  {note}" for note in one.daylight_saving)


def _after(one: PlannedChange) -> Iterator[str]:
    if one.is_on_events:
        yield from (f"  after   {rule}" for rule in one.when)
    else:
        yield from _next("after ", one.next_after, one.zone)


def _next(word: str, instants: Sequence[datetime], zone: str) -> Iterator[str]:
    if not instants:
        yield f"  {word}  no occurrence to come"
    for at in instants:
        yield f"  {word}  {in_zone(at, zone)} {zone}   {instant(at)}"


def _load(found: BusiestMinute) -> str:
    part = "" if found.is_whole else " (of the actions that are due first)"
    before, after = _busy(found.before), _busy(found.after)
    return f"busiest minute of the next 24 hours{part}: before {before}; after {after}"


def _busy(minute: BusyMinute | None) -> str:
    return "none" if minute is None else f"{minute.sent} at {instant(minute.at)}"


FORMS = {
    ChangePlan: _plan,
    Changes: _changes,
    Changed: sentence("{change} {name} ({uid}), revision {revision}"),
    Checked: _checked,
    Renamed: _renamed,
    Switched: _switched,
    SwitchedAll: _switched_all,
    DeletedAction: _deleted,
    DeletedActions: _deleted_owned,
}
