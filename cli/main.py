"""The command line: its global options, and the exit codes of errors.

0 done (also partial); 1 tried and failed; 2 refused before anything was done.
"""

import errno
import logging
import os
import signal
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.render import print_error, print_exactly, print_json_error, print_line
from cli.tree import Tree, hoisted
from models.errors import InvalidDocument, NotFound, Problem, Refused, SchedulerError
from processes.init import leave_first_place
from runtime.clock import use_pinned_zones
from runtime.folders import work_privately
from runtime.logs.lines import LineFormatter

FAILED = 1
REFUSED = 2
# The exit code of a command that Ctrl-C ends: 128 plus the signal's number, as in shells.
INTERRUPTED = 128 + signal.SIGINT
# Errors of a file that is already open, such as stdout; they name no file.
UNWRITTEN = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}

cli = typer.Typer(
    cls=Tree,
    name="minutebook",
    help="The cron daemon for Celery: every occurrence ends in exactly one recorded outcome.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        print_line(f"minutebook {version('minutebook')}")
        raise typer.Exit


@cli.callback()
def _globals(
    context: typer.Context,
    *,
    home: Annotated[
        Path | None, typer.Option(help="Folder of all files (default: SCHED_HOME or .minutebook).")
    ] = None,
    app: Annotated[
        str | None,
        typer.Option(help="Small app (tenant) to work on; hides all others (default: default)."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    url: Annotated[
        str | None, typer.Option(help="Ask a server elsewhere (default: SCHED_URL).")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            help="Token for that server. Other accounts can see it; SCHED_TOKEN is safer."
        ),
    ] = None,
    token_file: Annotated[Path | None, typer.Option(help="File with its token.")] = None,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    from cli.arguments import Invocation

    context.obj = Invocation(home, app or "default", json, is_bound=app is not None)
    if url or token or token_file or os.environ.get("SCHED_URL"):
        from cli.remote.opening import is_exposed, server_of

        server = server_of(home=home, url=url, token=token, token_file=token_file, app=app)
        if server is None:
            return
        context.call_on_close(server.close)
        context.obj.server = server
        if is_exposed(server.url):
            context.obj.notes.append(f"the token goes to {server.url} unencrypted; use https")


def main(arguments: Sequence[str]) -> int:
    """Run a command as this process; return its exit code."""
    leave_first_place()
    return run(arguments)


def run(arguments: Sequence[str]) -> int:
    """Run a command in this process; return its exit code."""
    _open_closed_streams()
    work_privately()
    use_pinned_zones()
    _quiet_logs()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # An ASCII terminal shows \u2026 instead of a traceback.
            stream.reconfigure(errors="backslashreplace")
    text, code, problems = _outcome(arguments)
    unwritten = _output_error()
    if isinstance(unwritten, BrokenPipeError):
        return 0
    if unwritten is not None:
        text, code = _explained(unwritten)
    if text and unwritten is None and "--json" in _before_dashes(arguments):
        print_json_error(text, code, problems)
    elif text:
        print_error(text)
    return code


def _before_dashes(arguments: Sequence[str]) -> Sequence[str]:
    """Return the arguments that may be options of Minutebook's own."""
    return arguments[: list(arguments).index("--")] if "--" in arguments else arguments


def _outcome(arguments: Sequence[str]) -> tuple[str, int, Sequence[Problem]]:
    """Run a command; return the text of its error, its exit code, and a document's faults."""
    try:
        code = cli(args=hoisted(arguments), standalone_mode=False, prog_name="minutebook")
    except typer.Exit as stop:
        return "", stop.exit_code, ()
    except SystemExit as stop:
        # Typer ends like this when the reader of a pipe has gone: it has what it wanted.
        if isinstance(stop.__context__, BrokenPipeError):
            return "", 0, ()
        raise
    except Exception as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            # Ctrl-C while pydantic writes a value: pydantic wraps every exception in its own error.
            return "", INTERRUPTED, ()
        problems = error.problems if isinstance(error, InvalidDocument) else ()
        return (*_explained(error), problems)
    return "", code if isinstance(code, int) else 0, ()


def _output_error() -> OSError | None:
    """Write what is still buffered; return why it cannot be."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python would try again at exit, and report the error a second time.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return error
    return None


def _open_closed_streams() -> None:
    """Point streams that the caller closed, such as with `>&-`, to the null device."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115


def _quiet_logs() -> None:
    """Silence logs but for unknown settings; `up` and `worker` set up their own."""
    logging.getLogger("minutebook").addHandler(logging.NullHandler())
    warnings = logging.StreamHandler(sys.stderr)
    warnings.setFormatter(LineFormatter("warning: %(message)s"))
    logging.getLogger("minutebook.config").handlers[:] = [warnings]


def _explained(error: Exception) -> tuple[str, int]:
    """Return an error's text and exit code; raises an unexpected error."""
    match error:
        case typer.Abort():
            return "aborted", FAILED
        case typer.TyperException() if "NoArgs" in type(error).__name__:
            # For a group without a command, print its help.
            print_exactly(f"{getattr(error, 'format_message', lambda: error)()}\n")
            return "name one of these commands", REFUSED
        case typer.TyperException():
            return _wrong_usage(error), REFUSED
        case InvalidDocument() | NotFound() | Refused():
            return str(error), REFUSED
        case SchedulerError():
            return str(error), FAILED
        case _:
            return _unavailable(error)


def _wrong_usage(error: Any) -> str:
    """Return what is wrong with the arguments, and where an option's values stand."""
    if (cause := error.__cause__) is not None and hasattr(cause, "errors"):
        from models.problems import remedy_of

        # Typer checks values with pydantic.
        error.message = "; ".join(map(remedy_of, cause.errors()))
    text = getattr(error, "format_message", lambda: str(error))()
    if text.endswith("requires an argument."):
        return text.replace("an argument.", "a value; --help says which")
    return " ".join(text.split())


def _unavailable(error: Exception) -> tuple[str, int]:
    """Return the text and exit code for an error of settings, database or a file."""
    from runtime.config import InvalidSetting
    from runtime.database import not_usable
    from runtime.supervisor import AlreadyRunning

    match error:
        case InvalidSetting() | AlreadyRunning():
            return str(error), REFUSED
        case _ if (text := not_usable(error)) is not None:
            return text, FAILED
        case OSError() if error.filename is not None:
            return f"{error.filename}: {error.strerror}", FAILED
        case OSError() if error.errno in UNWRITTEN:
            return f"cannot write: {error.strerror}", FAILED
        case _:
            raise error
