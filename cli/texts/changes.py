"""Changes of actions, done or tried, in words."""

from collections import Counter
from collections.abc import Iterator

from cli.texts.upcoming import described, why_nothing
from models.values import counted
from models.values.zones import in_zone
from services.changes.result import JITTER_TO_COME, Change, Changes
from services.upcoming import Upcoming
from services.words import instant

# How many names and warnings are printed; `--json` has all.
MOST_NAMED = 100
MOST_WARNINGS = 10
DID = {"pause": "paused", "resume": "resumed", "delete": "deleted"}
KINDS = ("created", "changed", "unchanged")
TRIED = {
    "created": "would create",
    "changed": "would change",
    "unchanged": "would not change",
    "deleted": "would delete",
}


def _changes(
    made: Changes,
    *,
    summary: bool = True,
    dry_run: bool = False,
    is_check: bool = False,
    verb: str = "",
) -> Iterator[str]:
    if is_check:
        for one in made.root:
            yield f"{one.name}: valid"
            if one.upcoming is not None:
                yield from described(one.upcoming, one.warnings)
    elif verb:
        yield from _many(made, f"would {verb}" if dry_run else DID[verb])
    elif dry_run:
        for one in made.root:
            yield from _tried(one)
    else:
        yield from _done(made, summary=summary)


def _done(made: Changes, *, summary: bool) -> Iterator[str]:
    for one in made.root:
        if one.upcoming is not None:
            yield f"{one.change} {_named(one)}"
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


def _named(one: Change) -> str:
    uid = f" ({one.uid})" if one.uid else ""
    switched = f", {one.switched}" if one.switched else ""
    return f"{one.name}{uid}, revision {one.revision}{switched}"


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


def _change(one: Change, *, dry_run: bool = False) -> Iterator[str]:
    """Yield what a change of one action did, or would do, by what is special in it."""
    if dry_run:
        yield from _tried(one)
    elif one.change == "deleted":
        yield f"deleted {one.name} ({one.uid}), {counted(one.cancelled, 'run')} cancelled"
    elif one.old_name is not None:
        yield f"renamed {one.old_name} to {_named(one)}"
    elif one.change == "unchanged":
        yield f"{one.name} is as it was, {'enabled' if one.active else 'paused'}"
    else:
        yield f"{one.switched or one.change} {one.name} ({one.uid}), revision {one.revision}"
    yield from (f"  warning: {text}" for text in one.warnings)


def _many(made: Changes, word: str) -> Iterator[str]:
    done = sorted((one for one in made.root if one.change != "unchanged"), key=lambda one: one.name)
    cancelled = sum(one.cancelled for one in done)
    also = f", {counted(cancelled, 'run')} cancelled" if cancelled else ""
    yield f"{word} {len(done)} of {counted(len(made.root), 'action')}{also}"
    yield from (f"  {one.name}" for one in done[:MOST_NAMED])
    if len(done) > MOST_NAMED:
        yield f"  … and {len(done) - MOST_NAMED} more"


def _tried(one: Change) -> Iterator[str]:
    yield f"{TRIED[one.change]} {_named(one)}"
    if one.before is not None:
        yield from _next("before", one.before)
    if one.upcoming is not None:
        yield from _next("after ", one.upcoming)
    if JITTER_TO_COME in one.warnings:
        yield f"  {JITTER_TO_COME}"
    zone = one.before.zone if one.before is not None else "UTC"
    for at in one.sent:
        yield f"  at once by the old rule  {in_zone(at, zone)} {zone}   {instant(at)}"
    if one.missed:
        yield f"  missed by the old rule   {one.missed}"
    if one.upcoming is not None:
        yield from (f"  {note}" for note in one.upcoming.daylight_saving)


def _next(word: str, one: Upcoming) -> Iterator[str]:
    if one.is_about_users or one.after is not None:
        yield from (f"  {word}  {rule}" for rule in one.when)
    elif not one.next or one.next[0].is_paused:
        yield f"  {word}  {'no occurrence to come' if one.next else why_nothing(one)}"
    else:
        for due in one.next:
            yield f"  {word}  {due.local} {due.zone}   {instant(due.utc)}"


FORMS = {Change: _change, Changes: _changes}
