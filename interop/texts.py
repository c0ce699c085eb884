"""Imports and exports in words."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

from cli.render import document_lines
from interop.outcomes import Kind
from interop.views.exports import Export
from interop.views.imports import Import, Moved
from views.words import instant

OUTCOMES: tuple[Kind, ...] = ("same", "differs", "cannot")


def report(made: Import, *, is_stored: bool) -> Iterator[str]:
    """Yield the report: what cannot move and what differs first, and what to do next.

    A remark that entries share is shown once, below them.
    """
    shared = _shared_remarks(made.entries)
    for one in sorted(made.entries, key=_rank(shared)):
        yield f"{one.outcome:7}  {one.name} ({one.where}){_details(one, shared)}"
        yield from _side_by_side(one)
    for remark, number in shared.items():
        of = "all" if number == len(made.entries) else str(number)
        yield f"{of} entries: {remark}"
    counts = Counter(one.outcome for one in made.entries)
    yield ", ".join(f"{kind} {counts[kind]}" for kind in OUTCOMES)
    if made.tasks and not is_stored:
        yield f"SCHED_CELERY_TASKS has to allow: {', '.join(made.tasks)}"
    if made.commands and not is_stored:
        yield f"SCHED_COMMANDS has to allow: {', '.join(made.commands)}"
    if made.cut_over_at is not None:
        at = instant(made.cut_over_at)
        yield f"cut-over: no action is due before {at}; stop the old scheduler just before it"


def _shared_remarks(entries: Sequence[Moved]) -> dict[str, int]:
    """Return the remarks of several entries, with how many they are; most first."""
    counts = Counter(remark for one in entries for remark in dict.fromkeys(one.remarks))
    return {remark: number for remark, number in counts.most_common() if number > 1}


def _rank(shared: Collection[str]) -> Callable[[Moved], int]:
    """Return what orders entries: refused, due at other instants, remarked alone, the others."""

    def rank(one: Moved) -> int:
        own = any(remark not in shared for remark in one.remarks)
        differs = one.next_differing is not None
        marks = (one.outcome == "cannot", differs, own, one.outcome == "differs")
        return marks.index(True) if True in marks else len(marks)

    return rank


def _details(one: Moved, shared: Collection[str]) -> str:
    if one.outcome == "cannot":
        return f": {one.why}; instead: {one.instead}"
    parts = [_next(one)] if one.next_differing else []
    parts += [remark for remark in one.remarks if remark not in shared]
    return ": " + "; ".join(parts) if parts else ""


def _next(one: Moved) -> str:
    there, here = one.next_differing or (None, None)
    shown = ["none" if at is None else instant(at) for at in (there, here)]
    return f"next in {_kind(one)}: {shown[0]}, here: {shown[1]}"


def _kind(one: Moved) -> str:
    """Return the other scheduler's name, from the owner `import:KIND` or `import:KIND:SOURCE`."""
    return str((one.document or {}).get("owner", "")).split(":")[1]


def _side_by_side(one: Moved) -> Iterator[str]:
    """Yield the next instants of an entry in both, if they differ."""
    if one.next_differing is None:
        return
    kind = _kind(one)
    for name, instants in ((kind, one.next_in_original), ("here", one.next_in_action)):
        shown = ", ".join(map(instant, instants or ())) or "none"
        yield f"{'':9}{name:{len(kind)}}  {shown}"


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
