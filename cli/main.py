"""The command line: its commands, and the one place where errors become exit codes.

0 done (also partial); 1 tried and failed; 2 refused before anything was done.
"""

import logging
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import sqlalchemy as sa
import typer

from cli import (
    actions,
    agent,
    apps,
    backfills,
    doctor,
    events,
    operations,
    repeats,
    service,
    simulating,
    status,
    steps,
    templates,
    users,
)
from cli.invocation import Invocation, hoisted
from cli.output import print_error, print_line
from models.errors import InvalidDocument, NotFound, Refused, SchedulerError
from runtime.config import InvalidSetting
from runtime.folders import PRIVATE_UMASK
from runtime.supervisor import AlreadyRunning

FAILED = 1
REFUSED = 2

cli = typer.Typer(
    name="minutehand",
    help="The cron daemon for Celery: every occurrence ends in exactly one recorded outcome.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
cli.add_typer(actions.commands, name="action")
cli.add_typer(operations.commands, name="operation")
for verb in (repeats.rerun, repeats.retry, repeats.cancel):
    operations.commands.command(verb.__name__)(verb)
cli.add_typer(apps.commands, name="app")
cli.add_typer(templates.commands, name="template")
cli.add_typer(users.commands, name="user")
cli.add_typer(events.commands, name="event")
cli.add_typer(steps.commands, name="step")
cli.command("backfill")(backfills.backfill)
cli.command("up")(service.up)
cli.command("worker")(service.worker)
cli.command("agent")(agent.agent)
cli.command("migrate")(service.migrate)
cli.command("status")(status.status)
cli.command("simulate")(simulating.simulate_files)
cli.command("doctor")(doctor.doctor)


@cli.callback()
def _globals(
    context: typer.Context,
    home: Annotated[
        Path | None, typer.Option(help="Folder of all files (default: SCHED_HOME or .minutehand).")
    ] = None,
    app: Annotated[str, typer.Option(help="Small app to work on.")] = "default",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    context.obj = Invocation(home, app, json)


def run(arguments: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    os.umask(PRIVATE_UMASK)
    _quiet_logs()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that knows ASCII only shows \u2026 instead of a traceback.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = cli(args=hoisted(arguments), standalone_mode=False, prog_name="minutehand")
    except BrokenPipeError:
        # The reader of a pipe went away; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except typer.Exit as stop:
        return stop.exit_code
    except Exception as error:
        text, code = _told(error)
        print_error(text)
    return code if isinstance(code, int) else 0


def _quiet_logs() -> None:
    """Commands answer by what they print; `up` and `worker` set up logs of their own.

    A setting that nobody knows is told all the same.
    """
    logging.getLogger("minutehand").addHandler(logging.NullHandler())
    warnings = logging.StreamHandler(sys.stderr)
    warnings.setFormatter(logging.Formatter("warning: %(message)s"))
    logging.getLogger("minutehand.config").handlers[:] = [warnings]


def _told(error: Exception) -> tuple[str, int]:
    """Return what to say of an error and the exit code; raises what nobody foresaw."""
    match error:
        case typer.Abort():
            return "aborted", FAILED
        case typer.TyperException() if "NoArgs" in type(error).__name__:
            # A group without a command: its help is the answer, not an error.
            print_line(str(getattr(error, "format_message", lambda: error)()))
            return "name one of these commands", REFUSED
        case typer.TyperException():
            format_message = getattr(error, "format_message", lambda: str(error))
            return format_message(), REFUSED
        case InvalidDocument() | NotFound() | Refused() | InvalidSetting() | AlreadyRunning():
            return str(error), REFUSED
        case SchedulerError():
            return str(error), FAILED
        case _:
            return _unavailable(error), FAILED


def _unavailable(error: Exception) -> str:
    """Return what to say of a database or a file that is away; raises what nobody foresaw."""
    match error:
        case sa.exc.OperationalError() | sa.exc.InterfaceError() | sa.exc.InternalError():
            first = str(error.orig).strip().splitlines() or [str(error)]
            return f"database unavailable (SCHED_DATABASE_URL): {first[0]}"
        case OSError() if error.filename is not None:
            return f"{error.filename}: {error.strerror}"
        case _:
            raise error
