"""Run the program of the step `command` and follow it to its end."""

import errno
import json
import logging
import os
import pwd
import selectors
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from io import FileIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from minutebook.steps import StepFailed, StepOutcome, StepResult
from models.references import is_reference
from models.values import format_instant
from runtime.clock import monotonic
from runtime.references import SecretMissing, resolved
from tasks.step_context import WorkContext
from tasks.steps.command import CommandParameters
from tasks.steps.command.output import Output
from tasks.steps.command.supervisor import KILL_AFTER_S

# The worker's variables that a program gets; everything else is left out.
PASSED_ON = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
SHELL = "/bin/sh"
TRY_AGAIN = os.EX_TEMPFAIL
CHECK_S = 0.2
# For a supervisor to end the group; one that its program stopped (SIGSTOP) never would.
PATIENCE_S = 5.0
PIECE = 1 << 18
MOST_READS_AT_END = 8
SUPERVISOR = Path(__file__).with_name("supervisor.py")


def run(context: WorkContext) -> StepResult:
    """Run the program; return its exit code, or raise StepFailed for any but 0."""
    read = context.parameters
    assert isinstance(read, CommandParameters)  # noqa: S101 - the step declares them
    began = monotonic()
    with _started(read, context) as running:
        end = running.follow()
    took_s = round(monotonic() - began, 3)
    details = {"exit_code": end.code, "duration_s": took_s, "output_bytes": running.size}
    if end.was_asked:
        return _ended_early(context, details)
    return _judged(end, running.last_line, details)


@dataclass(frozen=True, slots=True)
class _End:
    """How a program ended: its exit code, negative for a signal, or why it did not start."""

    code: int
    was_asked: bool = False
    error: str | None = None


def _judged(end: _End, last_line: str, details: dict[str, Any]) -> StepResult:
    if end.error:
        raise StepFailed(end.error, permanent=True)
    if end.code == 0:
        return StepResult("exit code 0", details=details)
    what = f"exit code {end.code}" if end.code > 0 else f"ended by {_signal_name(-end.code)}"
    is_temporary = end.code == TRY_AGAIN
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


@dataclass
class _Running:
    """A program with its supervisor, which ends its group with this process or before."""

    context: WorkContext
    process: subprocess.Popen[bytes]
    life: FileIO
    report: int
    pipes: Mapping[int, Output]
    last_line: str = ""
    _heard: bytes = b""
    _asked_at: float | None = None

    @property
    def size(self) -> int:
        """How many bytes of output were read."""
        return sum(one.size for one in self.pipes.values())

    def follow(self) -> _End:
        """Log the output until the program's group has ended; ask it to end when it should."""
        report: bytes | None = None
        with selectors.DefaultSelector() as selector:
            for each in (*self.pipes, self.report):
                selector.register(each, selectors.EVENT_READ)
            while report is None:
                for key, _events in selector.select(CHECK_S):
                    if key.fd == self.report:
                        report = self._reported()
                    elif not self._take(key.fd):
                        selector.unregister(key.fd)
                for output in self.pipes.values():
                    output.write_if_old()
                self._end_if_asked()
        return _end_of(report, was_asked=self._asked_at is not None)

    def _end_if_asked(self) -> None:
        if self._asked_at is None:
            if self.context.should_stop():
                self._asked_at = monotonic()
                self.ask_to_end()
        elif monotonic() >= self._asked_at + KILL_AFTER_S + PATIENCE_S:
            self.process.kill()

    def ask_to_end(self) -> None:
        """Ask the program's group to end; its supervisor kills it a little later."""
        with suppress(OSError):
            self.life.write(b"T")

    def end(self) -> None:
        """End the group if the program still runs, politely first; log what is left."""
        if self.process.poll() is None:
            self.ask_to_end()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(KILL_AFTER_S + CHECK_S)
        self.life.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(PATIENCE_S)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
            self._reported()
        for pipe, output in self.pipes.items():
            # Processes that left the group may still write.
            for _ in range(MOST_READS_AT_END):
                if not self._take(pipe):
                    break
            output.end()
            # The last line of stderr, if there is one.
            self.last_line = output.last or self.last_line

    def _reported(self) -> bytes | None:
        """Return the last line of the supervisor, empty if it died; None if it is not there yet."""
        piece = os.read(self.report, 4096)
        group, _, line = (self._heard + piece).partition(b"\n")
        self._heard += piece
        if line.endswith(b"\n"):
            return line
        if piece:
            return None
        if group:
            with suppress(ProcessLookupError):
                os.killpg(int(group), signal.SIGKILL)
        return b""

    def _take(self, pipe: int) -> bool:
        """Read once; return False at the end of the output."""
        try:
            piece = os.read(pipe, PIECE)
        except BlockingIOError:
            return True
        self.pipes[pipe].take(piece)
        return bool(piece)


def _end_of(report: bytes, *, was_asked: bool) -> _End:
    if not report:
        return _End(-signal.SIGKILL, was_asked, "its supervisor was killed")
    read = json.loads(report)
    error = f"cannot start: {read['error']}" if "error" in read else None
    return _End(read["code"], read["was_asked"], error)


@contextmanager
def _started(read: CommandParameters, context: WorkContext) -> Iterator[_Running]:
    """Start the program under a supervisor; its group has ended when the block has."""
    environment = _environment(read, context)
    folder = read.cwd or environment["HOME"]
    command = [folder, *_command(read, environment)]
    with ExitStack() as stack:
        life, our_life = os.pipe()
        # Its end kills the group, even if this process is killed.
        pipe = stack.enter_context(open(our_life, "wb", buffering=0))
        our_report, report = os.pipe()
        stack.callback(os.close, our_report)
        try:
            process = stack.enter_context(_supervised(read, (life, report), command, environment))
        finally:
            os.close(life)
            os.close(report)
        secrets = [environment[name] for name, one in read.env.items() if is_reference(one)]
        outputs = _outputs(process, context, secrets)
        running = _Running(context, process, pipe, our_report, outputs)
        try:
            yield running
        finally:
            running.end()


def _supervised(
    read: CommandParameters,
    pipes: tuple[int, int],
    command: Sequence[str],
    environment: Mapping[str, str],
) -> subprocess.Popen[bytes]:
    with TemporaryFile() as stdin:
        stdin.write((read.input or "").encode())
        stdin.seek(0)
        try:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", SUPERVISOR, *map(str, pipes), *command],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                pass_fds=pipes,
                # Ctrl-C in a terminal reaches the worker only.
                start_new_session=True,
            )
        except OSError as error:
            # A command line that is too long stays so; other limits of the machine may have room
            # later.
            is_permanent = error.errno == errno.E2BIG
            text = f"cannot start: {error.strerror}"
            raise StepFailed(text, permanent=is_permanent) from None


def _outputs(
    process: subprocess.Popen[bytes], context: WorkContext, secrets: Sequence[str]
) -> dict[int, Output]:
    outputs = {}
    for stream, level in ((process.stdout, logging.INFO), (process.stderr, logging.WARNING)):
        assert stream is not None  # noqa: S101 - a pipe
        os.set_blocking(stream.fileno(), False)
        outputs[stream.fileno()] = Output(context.logger, level, secrets)
    return outputs


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
    program, *arguments = read.run
    if "/" in program:
        return [read.program, *arguments]
    found = shutil.which(program, path=environment["PATH"])
    if found is None:
        where = f"is not in the worker's PATH {environment['PATH']}"
        raise StepFailed(f"{program!r} {where}; write its whole path", permanent=True)
    return [found, *arguments]
