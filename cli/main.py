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

import typer

from cli.output import print_error, print_line
from cli.tree import COMMANDS, GROUPS, command_named, grow, hoisted
from runtime.folders import PRIVATE_UMASK

FAILED = 1
REFUSED = 2


def tree_of(names: Sequence[str]) -> typer.Typer:
    """Return the command line, with the modules of the commands in `names` loaded."""
    cli = typer.Typer(
        name="minutehand",
        help="The cron daemon for Celery: every occurrence ends in exactly one recorded outcome.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    cli.callback()(_globals)
    grow(cli, names)
    return cli


def whole_tree() -> typer.Typer:
    """Return the command line with all that it has."""
    return tree_of([*COMMANDS, *GROUPS])


def _globals(
    context: typer.Context,
    home: Annotated[
        Path | None, typer.Option(help="Folder of all files (default: SCHED_HOME or .minutehand).")
    ] = None,
    app: Annotated[str, typer.Option(help="Small app to work on.")] = "default",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    from cli.invocation import Invocation

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
        given = hoisted(arguments)
        cli = tree_of(command_named(given))
        code = cli(args=given, standalone_mode=False, prog_name="minutehand")
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
    from models.errors import InvalidDocument, NotFound, Refused, SchedulerError
    from runtime.config import InvalidSetting
    from runtime.supervisor import AlreadyRunning

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
    import sqlalchemy as sa

    match error:
        case sa.exc.OperationalError() | sa.exc.InterfaceError() | sa.exc.InternalError():
            first = str(error.orig).strip().splitlines() or [str(error)]
            return f"database unavailable (SCHED_DATABASE_URL): {first[0]}"
        case OSError() if error.filename is not None:
            return f"{error.filename}: {error.strerror}"
        case _:
            raise error
