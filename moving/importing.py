"""What the commands of `minutebook import` share: they read, report, and store if asked."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import typer

from cli.arguments import door, of
from cli.render import show
from moving.entries import Entry, Refused
from moving.views import imports
from runtime.visible import visible_line

# In bytes: more than ten thousand entries.
LONGEST = 8 * 1024 * 1024
# A terminal shows how many entries were read after so many.
EACH = 100


def stem_of(file: Path) -> str:
    """Return where the entries of a file come from."""
    return "stdin" if str(file) == "-" else file.stem


@dataclass(frozen=True, slots=True)
class Storing:
    """Where entries come from, and how their actions are stored: the options of each command.

    `place` is their file, by which they are known if nothing else is named.
    """

    place: str | None
    source: str | None
    apply: bool
    cut_over: str | None
    application: str | None = None


def store_or_show(context: typer.Context, entries: Iterable[Entry | Refused], how: Storing) -> None:
    """Print what becomes of entries as actions, with a report; store them if asked to."""
    from moving.texts import report

    made = imports.imported(
        of(context),
        _counted(entries),
        how.cut_over,
        source=how.source or how.application or how.place,
        application=how.application,
        is_for_here=of(context).server is None,
    )
    print_report(context, report(made, is_stored=how.apply))
    show(context, imports.stored(door(context), made) if how.apply else made)


def _counted(entries: Iterable[Entry | Refused]) -> Iterator[Entry | Refused]:
    """Yield entries, and show on a terminal how many were read."""
    is_shown = sys.stderr.isatty()
    for number, entry in enumerate(entries, 1):
        yield entry
        if is_shown and number % EACH == 0:
            sys.stderr.write(f"\r{number:,} entries read")
            sys.stderr.flush()
    if is_shown:
        sys.stderr.write("\r\x1b[K")


def print_report(context: typer.Context, lines: Iterable[str]) -> None:
    """Print a report on stderr, but with --json, which has it."""
    if not of(context).as_json:
        for line in lines:
            sys.stderr.write(f"{visible_line(line)}\n")
