"""Run a program in the foreground for another scheduler, and put the run on record.

Whatever the database does, the program runs, and soon: what cannot be recorded is a warning.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from models.errors import LeaseLost
from runtime.clock import monotonic
from runtime.database import reason_of
from views.foreign_runs import Recorded

FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
# A terminal sends these to the program itself.
OF_TERMINALS = (signal.SIGINT, signal.SIGQUIT)
NOT_FOUND, NOT_EXECUTABLE = 127, 126
SIGNALLED = 128
LAST_BEAT_S = 10.0
# How long the program waits for its record, which is later made beside the program or after it.
START_S = 5.0
# Above the longest time that a database takes to answer or to fail.
RECORD_S = 90.0

Warn = Callable[[str], None]


class Recording:
    """The record of a run, made in a thread, because a locked database may take a minute."""

    def __init__(self, begin: Callable[[], Recorded]) -> None:
        self.recorded: Recorded | None = None
        self._begin = begin
        self._error: Exception = TimeoutError("the database does not answer")
        self._start()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._try, name="recording", daemon=True)
        self._thread.start()

    def _try(self) -> None:
        try:
            self.recorded = self._begin()
        except Exception as error:  # the program runs, whatever keeps it off the record
            self._error = error

    def within(self, seconds: float) -> Recorded | None:
        """Return the record if it is made in that time."""
        self._thread.join(seconds)
        return self.recorded

    def at_last(self) -> Recorded:
        """Return the record, tried once more if it failed; raises why it cannot be made."""
        if self.within(RECORD_S) is None and not self._thread.is_alive():
            self._start()
        recorded = self.within(RECORD_S)
        if recorded is None:
            raise self._error
        return recorded


@dataclass
class Foreground:
    """One program, its heartbeat and the signals that pass through."""

    program: Sequence[str]
    recording: Recording
    warn: Warn
    was_cancelled: bool = False
    _ended: threading.Event = field(default_factory=threading.Event)
    _process: subprocess.Popen[bytes] | None = None
    # Signals that came before the program had begun.
    _early: list[int] = field(default_factory=list)

    def run(self, umask: int) -> int:
        """Run the program to its end; return the exit code to end with."""
        # Before the start: an early signal reaches the program too.
        previous = {number: signal.signal(number, self._forward) for number in _passed_on()}
        try:
            recorded = self.recording.within(START_S)
            began = monotonic()
            code = self._run(umask, recorded)
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
        self._record_end(code, monotonic() - began)
        return SIGNALLED - code if code < 0 else code

    def _run(self, umask: int, recorded: Recorded | None) -> int:
        environment = dict(os.environ)
        if recorded is not None:
            environment["MINUTEBOOK_OPERATION_ID"] = str(recorded.id)
        try:
            self._process = subprocess.Popen(self.program, env=environment, umask=umask)
        except OSError as error:
            is_missing = isinstance(error, FileNotFoundError) or _is_nowhere(self.program[0])
            self.warn(f"{self.program[0]}: {'not found' if is_missing else error.strerror}")
            return NOT_FOUND if is_missing else NOT_EXECUTABLE
        while self._early:
            self._process.send_signal(self._early.pop(0))
        beats = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        beats.start()
        code = self._process.wait()
        self._ended.set()
        beats.join(LAST_BEAT_S)
        return code

    def _forward(self, number: int, _frame: Any) -> None:
        if self._process is None:
            self._early.append(number)
        else:
            self._process.send_signal(number)

    def _beat(self) -> None:
        while not self._ended.wait(self._rest_s()):
            if (recorded := self.recording.recorded) is None:
                continue
            try:
                if recorded.beat() and not self.was_cancelled:
                    self.was_cancelled = True
                    self._forward(signal.SIGTERM, None)
            except LeaseLost:
                return
            except Exception:  # noqa: S112 - the end is recorded, or warned of
                continue

    def _rest_s(self) -> float:
        recorded = self.recording.recorded
        return START_S if recorded is None else recorded.installation.settings.worker.heartbeat_s

    def _record_end(self, code: int, duration_s: float) -> None:
        try:
            recorded = self.recording.at_last()
        except Exception as error:  # as above
            self.warn(f"this run is not recorded: {reason_of(error)}")
            return
        try:
            recorded.end(code, duration_s, was_cancelled=self.was_cancelled)
        except Exception as error:  # the program has run, whatever the database says
            self.warn(f"the end of this run is not recorded: {reason_of(error)}")


def _passed_on() -> tuple[signal.Signals, ...]:
    # Ctrl-C reaches the program without us; we only outlive it.
    numbers = (*FORWARDED, *(() if sys.stdin is not None and sys.stdin.isatty() else OF_TERMINALS))
    # What `nohup` ignores, the program ignores too.
    return tuple(one for one in numbers if signal.getsignal(one) is not signal.SIG_IGN)


def _is_nowhere(name: str) -> bool:
    """Whether no folder of PATH that this account may read has a program of that name."""
    return "/" not in name and not any(
        os.path.exists(os.path.join(folder, name)) for folder in os.get_exec_path()
    )
