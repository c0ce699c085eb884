"""Run the program of the step `command` in a child process, and judge its end."""

import logging
import os
import pwd
import signal
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

from minutebook.steps import StepFailed, StepOutcome, StepResult
from models.values import format_instant
from models.values.references import is_reference
from runtime.clock import monotonic
from runtime.references import SecretMissing, resolved
from tasks.bounded import client
from tasks.bounded.limits import GRACE_S, InputFailed, Limits, Stopped, Watch
from tasks.step_context import WorkContext
from tasks.steps.command import CommandParameters

# The worker's variables that a program gets; everything else is left out.
PASSED_ON = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
SHELL = "/bin/sh"
TRY_AGAIN = os.EX_TEMPFAIL
# The shortest line of a secret that is hidden by itself; a shorter one would hide too much else.
SHORTEST_PART = 8


def run(context: WorkContext) -> StepResult:
    """Run the program; return its exit code, or raise StepFailed for any but 0."""
    read = context.parameters
    assert isinstance(read, CommandParameters)  # noqa: S101 - the step declares them
    call = client.Call("tasks.children.command:run", _arguments(read, context), is_online=True)
    time_s = context.time_left().total_seconds()
    limits = Limits(None, None, time_s, slack_s=GRACE_S, shown="the program")
    began = monotonic()

    def log(level: str, line: str) -> None:
        context.logger.log(logging.getLevelNamesMapping()[level], "%s", line)

    try:
        end = client.run(call, limits, Watch(context.should_stop), log)
    except InputFailed as error:
        raise StepFailed(str(error), permanent=error.permanent) from None
    except Stopped:
        end = {"code": -signal.SIGKILL, "was_asked": True, "size": None}
    took_s = round(monotonic() - began, 3)
    details = {"exit_code": end["code"], "duration_s": took_s, "output_bytes": end["size"]}
    if end["was_asked"]:
        return _ended_early(context, details)
    return _judged(end, details)


def _judged(end: Mapping[str, Any], details: dict[str, Any]) -> StepResult:
    code, last_line = end["code"], end["last_line"]
    if code == 0:
        return StepResult("exit code 0", details=details)
    what = f"exit code {code}" if code > 0 else f"ended by {_signal_name(-code)}"
    is_temporary = code == TRY_AGAIN
    what += " (try again)" if is_temporary else ""
    text = f"{what}: {last_line}" if last_line else what
    raise StepFailed(text, permanent=not is_temporary, details=details)


def _ended_early(context: WorkContext, details: dict[str, Any]) -> StepResult:
    if context.time_left() == timedelta(0):
        raise StepFailed("time limit: the program was ended", permanent=True, details=details)
    # Cancelled, or given back by a stopping worker: the runner knows which.
    return StepResult("the program was ended", StepOutcome.PARTIAL, details)


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def _arguments(read: CommandParameters, context: WorkContext) -> dict[str, Any]:
    environment = _environment(read, context)
    secrets = [environment[name] for name, one in read.env.items() if is_reference(one)]
    # If a secret has several lines, each line is hidden.
    parts = [part for one in secrets for part in one.splitlines() if len(part) >= SHORTEST_PART]
    return {
        "program": _command(read, environment),
        "folder": read.cwd or environment["HOME"],
        "environment": environment,
        "input": read.input or "",
        "secrets": [*secrets, *parts],
    }


def _environment(read: CommandParameters, context: WorkContext) -> dict[str, str]:
    own = {**_account(), "PATH": DEFAULT_PATH}
    own |= {name: os.environ[name] for name in PASSED_ON if os.environ.get(name)}
    try:
        named = {
            name: resolved(value, context.settings.secrets) for name, value in read.env.items()
        }
    except SecretMissing as error:
        raise StepFailed(str(error), permanent=True) from None
    return {
        **own,
        **named,
        "MINUTEBOOK_OPERATION_ID": str(context.operation_id),
        "MINUTEBOOK_ATTEMPT": str(context.attempt),
        "MINUTEBOOK_OCCURRENCE_AT": format_instant(context.occurrence_at),
    }


def _account() -> dict[str, str]:
    """Return the home folder and the name of this account; a container may run as a bare number."""
    try:
        account = pwd.getpwuid(os.getuid())
    except KeyError:
        return {"HOME": "/"}
    return {"HOME": account.pw_dir, "LOGNAME": account.pw_name}


def _command(read: CommandParameters, environment: Mapping[str, str]) -> list[str]:
    if read.run is None:
        return [environment.get("SHELL") or SHELL, "-c", str(read.shell)]
    # A name without a slash is searched in the program's own PATH.
    return [read.program, *read.run[1:]]
