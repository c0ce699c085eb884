"""Imports and exports in words."""

from collections import Counter
from collections.abc import Iterator

from cli.render import document_lines
from moving.outcomes import Kind
from moving.views.exports import Export
from moving.views.imports import Import, Moved
from views.words import instant

OUTCOMES: tuple[Kind, ...] = ("same", "differs", "cannot")


def report(made: Import, *, is_stored: bool) -> Iterator[str]:
    """Yield the report: one line per entry, how many there are, and what to do next."""
    for one in made.entries:
        yield f"{one.outcome:7}  {one.name} ({one.where}){_details(one)}"
    counts = Counter(one.outcome for one in made.entries)
    yield ", ".join(f"{kind} {counts[kind]}" for kind in OUTCOMES)
    if made.tasks and not is_stored:
        yield f"SCHED_CELERY_TASKS has to allow: {', '.join(made.tasks)}"
    if made.commands and not is_stored:
        yield f"SCHED_COMMANDS has to allow: {', '.join(made.commands)}"
    if made.cut_over_at is not None:
        at = instant(made.cut_over_at)
        yield f"cut-over: no action is due before {at}; stop the old scheduler just before it"


def _details(one: Moved) -> str:
    if one.outcome == "cannot":
        return f": {one.why}; instead: {one.instead}"
    parts = [_instants(one)] if one.differing else []
    return ": " + "; ".join([*parts, *one.remarks]) if parts or one.remarks else ""


def _instants(one: Moved) -> str:
    where = "in the action" if one.only_in == "action" else "in the original"
    at = "" if one.first_differing_at is None else instant(one.first_differing_at)
    return (
        f"{one.differing} instants of {one.occurrences} in two years, first {at}, which is only"
        f" {where}"
    )


def _documents(made: Import) -> Iterator[str]:
    if made.changes is None:
        yield from document_lines(made.documents)
    else:
        counts = Counter(one.change for one in made.changes.root)
        yield ", ".join(f"{kind} {counts[kind]}" for kind in ("created", "changed", "unchanged"))


def report_of_export(made: Export) -> Iterator[str]:
    """Yield the report: one line per action, and how many there are."""
    for one in made.actions:
        said = f"{one.why}; instead: {one.instead}" if one.why else "; ".join(one.remarks)
        yield f"{one.outcome:7}  {one.name}" + (f": {said}" if said else "")
    counts = Counter(one.outcome for one in made.actions)
    yield ", ".join(f"{kind} {counts[kind]}" for kind in OUTCOMES)


def _exported(made: Export) -> Iterator[str]:
    yield from made.text.splitlines()


FORMS = {Import: _documents, Export: _exported}
