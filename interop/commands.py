"""`minutebook import …` and `minutebook export`: from other schedulers and for them."""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from cli.arguments import backend, existing, of
from cli.render import show
from cli.tree import group
from interop.entries import Entry, Refused
from interop.exported import Format
from interop.services import imports
from models.errors import Refused as RefusedCommand
from runtime.clock import machine_zone, utc_now
from runtime.visible import visible_line
from services.files import read_documents, read_one, read_text

# In bytes: more than ten thousand entries.
LONGEST = 8 * 1024 * 1024
# A terminal shows how many entries were read after so many.
EACH = 100
# A path has one slash of the two.
_URL = re.compile(r"([a-z][a-z0-9+]{2,}):/")

commands = group("Import the schedules of other schedulers.")

Apply = Annotated[bool, typer.Option("--apply", help="Store the actions.")]
_FROM = "Where the entries come from: part of the actions' owner (default: the name of the file)."
Source = Annotated[str | None, typer.Option(help=_FROM, metavar="NAME")]
CutOver = Annotated[
    str | None,
    typer.Option(help="No action is due before this full minute.", metavar="INSTANT"),
]


Queue = Annotated[str, typer.Option(help="Queue of tasks without one: task_default_queue.")]


@commands.command("beat")
def beat(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="From `python -m minutebook export`; - is stdin.")],
    source: Source = None,
    apply: Apply = False,
    cut_over: CutOver = None,
) -> None:
    """Import the beat_schedule of a Celery application. Prints the actions, and a report."""
    from interop.beat_file import entries_of

    _check_is_file(file, "python -m minutebook export -A APP -o beat.json")
    here = of(context)
    known = here.settings.celery.broker_options if here.server is None else {}
    entries = entries_of(read_one(file, LONGEST), file.name, utc_now(), known)
    how = _Storing(_stem_of(file), source, apply, cut_over)
    _store_or_show(context, entries, how)


@commands.command("crontab")
def crontab(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A crontab; - is stdin.", allow_dash=True)],
    *,
    system: Annotated[
        bool, typer.Option(help="Each line names an account, as in /etc/crontab.")
    ] = False,
    zone: Annotated[
        str | None, typer.Option(help="Zone of lines without CRON_TZ (default: the machine's).")
    ] = None,
    source: Source = None,
    apply: Apply = False,
    cut_over: CutOver = None,
) -> None:
    """Import the lines of a crontab. Prints the actions, and a report."""
    from interop.crontab import entries_of, is_system_form
    from interop.crontab.forms import account_of

    text = read_text(file, LONGEST, newline="")
    if len(text) > LONGEST:
        raise RefusedCommand(f"{file} has more than {LONGEST:,} characters; import a shorter one")
    path = str(file.absolute())
    is_system = system or is_system_form(text, path)
    entries = entries_of(
        text, file.name, zone or machine_zone(), is_system=is_system, account=account_of(path)
    )
    _store_or_show(context, entries, _Storing(_stem_of(file), source, apply, cut_over))


@commands.command("apscheduler")
def apscheduler(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(help="From `python -m minutebook apscheduler`; - is stdin.")
    ],
    *,
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            help="Functions that are Celery tasks, or a pattern; may be repeated (default:"
            " SCHED_CELERY_TASKS).",
            metavar="NAME",
        ),
    ] = None,
    python: Annotated[
        str | None,
        typer.Option(help="Run functions that are not Celery tasks as commands of this Python."),
    ] = None,
    queue: Queue = "celery",
    source: Source = None,
    apply: Apply = False,
    cut_over: CutOver = None,
) -> None:
    """Import the jobs of APScheduler 3. Prints the actions, and a report."""
    from interop.apscheduler_jobs import Work, entries_of, written_jobs
    from models.celery_task import CeleryRules

    _check_is_file(file, "python -m minutebook apscheduler -s MODULE:SCHEDULER -o jobs.json")
    allowed = CeleryRules(tuple(tasks or of(context).settings.celery.tasks))
    work = Work(allowed.allows, queue, python)
    entries = entries_of(written_jobs(read_one(file, LONGEST)), file.name, work, utc_now())
    how = _Storing(_stem_of(file), source, apply, cut_over)
    _store_or_show(context, entries, how)


def _check_is_file(file: Path, writer: str) -> None:
    """Raise Refused for the URL of a database, and say what writes a file of what is there."""
    if found := _URL.match(str(file)):
        raise RefusedCommand(
            f"{found[1]}://… is a database, and no file; run `{writer}` in the application's"
            " environment, and import the file that it writes"
        )


@commands.command("jobs")
def import_jobs(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="JSON list of url, interval_s and meta.")],
    apply: Apply = False,
    cut_over: CutOver = None,
) -> None:
    """Import a list of jobs for workers in any language. Prints the actions, and a report."""
    from interop.jobs import entries_of
    from services.jobs import LONGEST_IMPORT

    entries = entries_of(read_documents(file, LONGEST_IMPORT))
    _store_or_show(context, entries, _Storing(None, None, apply, cut_over))


def _stem_of(file: Path) -> str:
    """Return where the entries of a file come from."""
    return "stdin" if str(file) == "-" else file.stem


def export(
    context: typer.Context,
    format: Annotated[Format, typer.Option("--format", help="What to print.")] = "json",
    owner: Annotated[str | None, typer.Option(help="Only actions of this owner.")] = None,
    zone: Annotated[
        str | None,
        typer.Option(help="Zone of a schedule for beat (default: that of most actions)."),
    ] = None,
) -> None:
    """Print the actions of a small app for another scheduler, and a report."""
    from interop.services import exports
    from interop.texts import report_of_export

    documents = exports.documents_of(existing(context), owner)
    made = exports.export(of(context), documents, format, zone)
    _print_report(context, report_of_export(made))
    show(context, made)


@dataclass(frozen=True, slots=True)
class _Storing:
    """Where entries come from, and how their actions are stored: the options of each command.

    `place` is their file, by which they are known if nothing else is named.
    """

    place: str | None
    source: str | None
    apply: bool
    cut_over: str | None


def _store_or_show(
    context: typer.Context, entries: Iterable[Entry | Refused], how: _Storing
) -> None:
    """Print what becomes of entries as actions, with a report; store them if asked to."""
    from interop.texts import report

    made = imports.imported(
        of(context),
        _counted(entries),
        how.cut_over,
        source=how.source or how.place,
        is_for_here=of(context).server is None,
    )
    lines = report(made, is_stored=how.apply)
    if how.apply:
        _print_report(context, lines)
        show(context, imports.stored(backend(context), made))
        return
    try:
        show(context, made)
    finally:
        # Below the actions, where a terminal shows it.
        sys.stdout.flush()
        _print_report(context, lines)


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


def _print_report(context: typer.Context, lines: Iterable[str]) -> None:
    """Print a report on stderr, but with --json, which has it."""
    if not of(context).as_json:
        for line in lines:
            sys.stderr.write(f"{visible_line(line)}\n")
