"""Imports and exports in words."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from textwrap import wrap

from cli.render import document_lines
from interop.outcomes import OUTCOMES, Kind
from interop.services.exports import Export
from interop.services.imports import Import, Moved
from services.words import instant

WIDTH = 80
FEW = 3
# In place of a space within a name, at which no line ends.
JOINED = "\N{NO-BREAK SPACE}"


def report(made: Import, *, is_stored: bool) -> Iterator[str]:
    """Yield the report: how many there are, what holds for most, and then the worst first.

    What several entries have in common is said once, above their names.
    """
    yield from _table(one.outcome for one in made.entries)
    remarks, most = _by_text(made.entries), len(made.entries) / 2
    shared = {text: found for text, found in remarks.items() if 1 < len(found) >= most}
    unknown = _by_text(made.entries, "unknown")
    for text, found in {**shared, **unknown}.items():
        yield from _group(f"{_number(found, made.entries)}: ", text)
    yield from _to_do(made, is_stored=is_stored)
    for (why, instead), found in _refused(made.entries).items():
        yield from _group("cannot: ", why, f"instead: {instead}", _places(found))
    yield from _differing(made.entries, remarks.keys() - shared.keys())
    rest = [
        one for one in made.entries if not one.next_differing and not {*one.remarks} - {*shared}
    ]
    for head, kind in (("differs as most do: ", "differs"), ("same: ", "same")):
        if found := [one for one in rest if one.outcome == kind]:
            yield from _group(head, _names(found))


def _differing(entries: Sequence[Moved], texts: Collection[str]) -> Iterator[str]:
    """Yield entries that are due at other instants, and then those of which a text is true."""
    for one in entries:
        if one.next_differing is not None:
            yield from _group("differs: ", "at its next instants", _places([one]))
            yield from _side_by_side(one)
    for text, found in _by_text(entries).items():
        if text in texts:
            yield from _group("differs: ", text, _places(found))


def _table(outcomes: Iterable[Kind]) -> Iterator[str]:
    counts = Counter[str](outcomes)
    counts["entries"] = counts.total()
    names = (*OUTCOMES, "entries")
    yield "  ".join(names)
    yield "  ".join(f"{counts[name]:{len(name)}}" for name in names)


def _by_text(entries: Sequence[Moved], field: str = "remarks") -> dict[str, list[Moved]]:
    """Return the entries by what is said of them; what is said of most comes last."""
    found: dict[str, list[Moved]] = {}
    for one in entries:
        for text in dict.fromkeys(getattr(one, field)):
            found.setdefault(text, []).append(one)
    return dict(sorted(found.items(), key=lambda pair: len(pair[1])))


def _refused(entries: Sequence[Moved]) -> Mapping[tuple[str, str], list[Moved]]:
    found: dict[tuple[str, str], list[Moved]] = {}
    for one in entries:
        if one.outcome == "cannot":
            found.setdefault((one.why, one.instead), []).append(one)
    return found


def _number(found: Sequence[Moved], entries: Sequence[Moved]) -> str:
    of = "all" if len(found) == len(entries) else f"{len(found)} of"
    return f"{of} {len(entries)} entries"


def _to_do(made: Import, *, is_stored: bool) -> Iterator[str]:
    if made.tasks and not is_stored:
        yield from _group("SCHED_CELERY_TASKS has to allow: ", ", ".join(made.tasks))
    if made.commands and not is_stored:
        yield from _group("SCHED_COMMANDS has to allow: ", ", ".join(made.commands))
    if made.cut_over_at is not None:
        at = instant(made.cut_over_at)
        text = f"no action is due before {at}; stop the old scheduler just before it"
        yield from _group("cut-over: ", text)


def _group(head: str, *texts: str) -> Iterator[str]:
    """Yield an empty line and paragraphs: the first after a head, the others below it."""
    yield ""
    for number, text in enumerate(texts):
        lines = wrap(
            text,
            WIDTH,
            initial_indent=head if number == 0 else "  ",
            subsequent_indent="  ",
            break_on_hyphens=False,
            break_long_words=False,
        )
        yield from (line.replace(JOINED, " ") for line in lines)


def _places(found: Sequence[Moved]) -> str:
    """Return the names of entries, and where the first few are."""
    few = {one.name: f"{one.name} ({one.where})" for one in found[:FEW]}
    return ", ".join(few.get(one.name, one.name).replace(" ", JOINED) for one in found)


def _names(found: Sequence[Moved]) -> str:
    return ", ".join(one.name.replace(" ", JOINED) for one in found)


def _side_by_side(one: Moved) -> Iterator[str]:
    """Yield the next instants of an entry in both."""
    # The other scheduler's name, from the owner `import:KIND` or `import:KIND:SOURCE`.
    kind = str((one.document or {}).get("owner", "")).split(":")[1]
    yield f"    {kind:22}here"
    for pair in zip_longest(one.next_in_original or (), one.next_in_action):
        there, here = ("none" if at is None else instant(at) for at in pair)
        yield f"    {there:22}{here}"


def _documents(made: Import) -> Iterator[str]:
    if made.changes is None:
        yield from document_lines(made.documents)
    else:
        counts = Counter(one.change for one in made.changes.root)
        yield ", ".join(f"{kind} {counts[kind]}" for kind in ("created", "changed", "unchanged"))


def report_of_export(made: Export) -> Iterator[str]:
    """Yield the report: how many there are, and one line per action."""
    yield from _table(one.outcome for one in made.actions)
    for one in made.actions:
        said = f"{one.why}; instead: {one.instead}" if one.why else "; ".join(one.remarks)
        yield f"{one.outcome:7}  {one.name}" + (f": {said}" if said else "")


def _exported(made: Export) -> Iterator[str]:
    yield from made.text.splitlines()


FORMS = {Import: _documents, Export: _exported}
