"""`minutehand exec`: run a program for another scheduler, and put the run on record."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from cli.arguments import existing_here
from processes.foreground import Foreground, first_line
from runtime.folders import caller_umask
from runtime.visible import visible_line
from views import foreground


def execute(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The action to record it for.", metavar="ACTION")],
    program: Annotated[list[str], typer.Argument(help="After `--`: what to run.")],
) -> None:
    """Run a program in the foreground and record it as an operation of an action.

    For programs that cron starts. The program runs even if the database is unavailable; its exit
    code is that of this command. A new name makes a paused action.
    """
    code = Foreground(program, _recorded(context, name, program), _warn).run(caller_umask())
    raise typer.Exit(code)


def _recorded(
    context: typer.Context, name: str, program: Sequence[str]
) -> foreground.Recorded | None:
    try:
        return foreground.begin(existing_here(context), name, program, os.getcwd())
    except Exception as error:  # the program runs, whatever keeps it off the record
        _warn(f"this run is not recorded: {first_line(error)}")
        return None


def _warn(text: str) -> None:
    sys.stderr.write(f"minutehand exec: warning: {visible_line(text)}\n")
    sys.stderr.flush()
