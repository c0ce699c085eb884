"""Print a view as JSON or text.

On a terminal, tables fit its width and states have colours, unless NO_COLOR is set. In a pipe, text
is plain, aligned and complete. Control characters in data are escaped: `\\x1b`.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from importlib import import_module
from string import Formatter
from typing import TYPE_CHECKING, Any, TextIO

import typer

from models.errors import Problem
from runtime.visible import visible, visible_json, visible_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from cli.arguments import Invocation
    from services.view import Shown

STYLES = {
    "failed": "red",
    "fault": "red",
    "quarantined": "red",
    "partial": "yellow",
    "missed": "yellow",
    "warning": "yellow",
    "paused": "yellow",
    "success": "green",
    "ok": "green",
    "active": "green",
    "running": "cyan",
}
# The styles of the first words of a line.
MARKS = {
    "error:": "red",
    "warning:": "yellow",
    "fault": "red",
    "SET ASIDE": "red",
}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under headings."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


Line = str | Table
# What makes a view lines; it may have options.
Form = Callable[..., Iterable[Line]]


def show(context: typer.Context, view: "Shown", **options: Any) -> None:
    """Print a view and its errors; exit with its code, unless it is 0.

    `options` are for its text form only.
    """
    from cli.arguments import of
    from services.view import as_json, json_text

    invocation = of(context)
    for note in (*invocation.notes, *view.notes):
        print_warning(note)
    for one in view.errors:
        print_error(one)
    if invocation.as_json:
        print_line(json_text(view), is_safe=True)
    else:
        print_lines(text_of(view, **options))
        is_list = context.info_name == "list"
        if is_list and context.params.get("all_apps") is False and not as_json(view):
            _print_nothing(invocation)
    if view.exit_code:
        raise typer.Exit(view.exit_code)


def _print_nothing(invocation: "Invocation") -> None:
    """Print on stderr that a list is empty, and whether there is more to look at."""
    more = "" if invocation.is_bound else "; --all-apps shows those of all small apps"
    text = f"nothing to show in small app {invocation.app_name}{more}"
    sys.stderr.write(visible_line(text) + "\n")


def text_of(view: "Shown", **options: Any) -> Iterable[Line]:
    kind = type(view)
    form: Form = import_module(_texts_of(kind.__module__)).FORMS[kind]
    return form(view, **options)


def _texts_of(module: str) -> str:
    """Return the module with the texts of a service's results; a plug-in has one for all."""
    room, *names = module.split(".")
    return f"cli.texts.{names[0]}" if room == "services" else f"{room}.texts"


def print_lines(lines: Iterable[Line]) -> None:
    for line in lines:
        if isinstance(line, Table):
            _print_table(line)
        else:
            print_line(line)


def print_line(text: str = "", *, is_safe: bool = False) -> None:
    """Print a line on stdout; `is_safe`: its control characters are escaped already."""
    text = text if is_safe else visible_line(text)
    if _has_colour(sys.stdout) and not is_safe:
        _print_styled(sys.stdout, text)
    else:
        sys.stdout.write(f"{text}\n")


def print_exactly(text: str) -> None:
    """Print a file's text as it is; on a terminal, its control characters are escaped."""
    sys.stdout.write(visible(text) if sys.stdout.isatty() else text)


def print_error(text: str) -> None:
    """Print one line on stderr for each line of an error."""
    _print_marked("error: ", text)


def print_json_error(text: str, code: int, problems: Sequence[Problem]) -> None:
    """Print an error on stderr as one JSON object, with the faults of a document."""
    found = {
        "error": text,
        "exit_code": code,
        "problems": [
            {"path": one.path, "value": one.value, "remedy": one.remedy} for one in problems
        ],
    }
    sys.stderr.write(f"{json.dumps(found, default=str)}\n")


def print_warning(text: str) -> None:
    """Print one line on stderr for each line of a warning."""
    _print_marked("warning: ", text)


def rows_of(rows: Sequence[Any], columns: str, rare: str = "") -> Table:
    """Return rows as a table; `columns` are attributes, such as `name last_state=LAST`.

    Without a heading, the attribute is one: `created_at` is CREATED. Those in `rare` are shown if a
    row has one that is not zero, empty or None.
    """
    shown = [one for one in rare.split() if any(getattr(row, one) for row in rows)]
    pairs = [one.partition("=") for one in (*columns.split(), *shown)]
    headings = [(heading or _heading(name)).replace("_", " ") for name, _, heading in pairs]
    return Table(headings, [[cell(getattr(row, name)) for name, _, _ in pairs] for row in rows])


def _heading(name: str) -> str:
    return name.removesuffix("_at").removesuffix("_s").removeprefix("is_").upper()


def listing(columns: str, rare: str = "") -> Form:
    """Return the form of a list: a table, as `rows_of` makes it; with `all_apps`, of their apps."""

    def form(listed: Any, *, all_apps: bool = False) -> Iterator[Line]:
        yield rows_of(listed.root, f"app {columns}" if all_apps else columns, rare)

    return form


class _Words(Formatter):
    """Fills the fields of a view into a sentence: `{id}`, or `{cancelled:run}` for `2 runs`."""

    def get_field(self, field_name: str, args: Sequence[Any], _kwargs: Any) -> Any:
        return getattr(args[0], field_name), field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        from models.values import counted

        return counted(value, format_spec) if format_spec else cell(value)


def sentence(text: str) -> Form:
    """Return the form of a view that one sentence says: `deleted {id}, {cancelled:run} gone`."""
    return lambda view: _Words().format(text, view).split("\n")


def document_lines(document: object) -> Iterator[str]:
    """Yield the lines of a document as JSON, indented by two, with control characters escaped."""
    yield from visible_json(json.dumps(document, indent=2, ensure_ascii=False)).split("\n")


def cell(value: object) -> str:
    """Return a value as a cell shows it: instants in UTC, the first line of a text."""
    from services.words import instant

    match value:
        case None:
            return "-"
        case tuple() | list():
            return ", ".join(map(str, value))
        case datetime():
            return instant(value)
        case _:
            return str(value).split("\n", 1)[0]


def _print_marked(mark: str, text: str) -> None:
    for line in text.splitlines() or [""]:
        shown = f"{mark}{visible(line)}"
        if _has_colour(sys.stderr):
            _print_styled(sys.stderr, shown)
        else:
            sys.stderr.write(f"{shown}\n")


def _has_colour(stream: TextIO) -> bool:
    asked_not_to = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not asked_not_to


def _print_table(table: Table) -> None:
    headings = [visible_line(one) for one in table.headings]
    rows = [[visible_line(one) for one in row] for row in table.rows]
    if sys.stdout.isatty():
        _print_fitting(headings, rows)
    else:
        for line in _aligned([headings, *rows]):
            sys.stdout.write(f"{line}\n")


def _aligned(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    return ("  ".join(cells).rstrip() for cells in _padded(lines))


def _padded(lines: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    from cli.fitting import width_of

    widths = [max(map(width_of, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield [
            text + " " * (width - width_of(text)) for text, width in zip(line, widths, strict=True)
        ]


def _print_fitting(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table that fits the terminal, a line for each row."""
    from rich.text import Text

    from cli.fitting import fitted
    from runtime.clock import utc_now

    console = _console(sys.stdout)
    bold = "bold" if _has_colour(sys.stdout) else ""
    styles = [[bold] * len(headings), *([STYLES.get(text, "") for text in row] for row in rows)]
    lines = _padded(fitted([headings, *rows], console.width, utc_now().year))
    for cells, looks in zip(lines, styles, strict=True):
        parts = [Text(text, style=look) for text, look in zip(cells, looks, strict=True)]
        line = Text("  ").join(parts)
        line.rstrip()
        console.print(line, soft_wrap=True)


def _print_styled(stream: TextIO, text: str) -> None:
    _console(stream).print(_styled(text), soft_wrap=True)


@lru_cache(maxsize=2)
def _console(stream: TextIO) -> "Console":
    from rich.console import Console

    return Console(file=stream, no_color=not _has_colour(stream), highlight=False)


def _styled(text: str) -> "Text":
    from rich.text import Text

    shown = Text(text)
    start = len(text) - len(text.lstrip())
    for mark, style in MARKS.items():
        if text.startswith(mark, start):
            shown.stylize(style, start, start + len(mark))
    return shown
