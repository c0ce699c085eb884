"""Supervision of child processes: start them, restart dead ones, stop all."""

import contextlib
import ctypes
import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple, Self

from runtime.clock import monotonic, wait_for
from runtime.logs.events import EventLog

logger = EventLog("minutebook.up")

PARENT = "MINUTEBOOK_PARENT_PID"
LONGEST_PAUSE_S = 30.0
# A child that lived this long is restarted at once.
HEALTHY_S = 60.0
WATCH_S = 0.5
# How long a child whose parent is gone may take to stop.
STOPS_WITHIN_S = 20.0
# Linux only; elsewhere the next `up` stops the children of a killed one.
PRCTL = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None
PR_SET_PDEATHSIG = 1


class AlreadyRunning(RuntimeError):
    """Another process holds the folder's lock; the text names its pid."""


class Holder(NamedTuple):
    """The process that holds a folder's lock: its pid, and where that pid has a meaning."""

    pid: int
    place: str

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Read what a holder wrote; None if it has not written yet."""
        pid, _, place = text.strip().partition(" ")
        return cls(int(pid), place) if pid else None

    @property
    def is_elsewhere(self) -> bool:
        """Whether it runs in another container or on another machine."""
        return bool(self.place) and self.place != _place()

    def __str__(self) -> str:
        where = " of another container or machine" if self.is_elsewhere else ""
        return f"pid {self.pid}{where}"


@dataclass
class Child:
    """One child: its command, and the earliest time of its restart."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    # A foreign program cannot call `end_with_parent`.
    is_foreign: bool = False
    process: subprocess.Popen[bytes] | None = None
    _started: float = 0.0
    _pause_s: float = 0.0
    _start_at: float = 0.0

    def start(self) -> None:
        """Start the process in its own session: Ctrl-C reaches only the parent."""
        self._started = monotonic()
        self.process = subprocess.Popen(
            self.command,
            env={**os.environ, **self.environment, PARENT: str(os.getpid())},
            stdin=subprocess.DEVNULL,
            # Logs go to stderr. Celery prints hints on keys that have no effect here.
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_sigterm_with_parent if self.is_foreign and PRCTL else None,  # noqa: PLW1509
        )

    @property
    def is_alive(self) -> bool:
        """Whether the process is running."""
        return self.process is not None and self.process.poll() is None

    def keep_alive(self) -> None:
        """Restart a dead process after a pause that doubles up to 30 s."""
        if self.is_alive:
            return
        if self._start_at == 0.0:
            is_sudden = monotonic() - self._started < HEALTHY_S
            self._pause_s = min(LONGEST_PAUSE_S, max(1.0, self._pause_s * 2)) if is_sudden else 0.0
            self._start_at = monotonic() + self._pause_s
            code = self.process.returncode if self.process else None
            logger.error(
                "process_ended", "{process} ended with {code}; starting it again", self.name, code
            )
        if monotonic() >= self._start_at:
            try:
                self.start()
            except OSError as error:  # as when memory is short
                logger.error(
                    "process_not_started",
                    "{process} cannot be started: {error}; trying again",
                    self.name,
                    error,
                )
                self._start_at = monotonic() + LONGEST_PAUSE_S
            else:
                self._start_at = 0.0

    def signal(self, number: signal.Signals) -> None:
        """Send a signal if the process is running."""
        if self.process is not None and self.is_alive:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)


def stop_all(children: Sequence[Child], timeout_s: float) -> None:
    """Stop all children in parallel: SIGTERM, then SIGKILL after the time-out."""
    for child in children:
        child.signal(signal.SIGTERM)
    if not wait_for(lambda: not any(child.is_alive for child in children), timeout_s):
        for child in children:
            if child.is_alive:
                logger.warning("process_killed", "{process} does not stop; killing it", child.name)
            child.signal(signal.SIGKILL)
    for child in children:
        if child.process is not None:
            child.process.wait()


@contextmanager
def folder_lock(folder: Path) -> Iterator[IO[str]]:
    """Hold a home folder's lock; raises AlreadyRunning with the holder's pid."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "up.lock"
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = Holder.of(file.read())
            raise AlreadyRunning(
                f"minutebook up already runs on {folder} with {holder or 'an unknown pid'}"
            ) from None
        except OSError as error:
            # Some network file systems have no locks.
            raise OSError(error.errno, f"cannot be locked: {error.strerror}", str(path)) from None
        file.truncate(0)
        file.write(f"{os.getpid()} {_place()}")
        file.flush()
        yield file


def lock_holder(folder: Path) -> Holder | None:
    """Return the process that holds a home folder's lock; None for no process."""
    with contextlib.suppress(FileNotFoundError), (folder / "up.lock").open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return Holder.of(file.read())
    return None


def _place() -> str:
    """Name this start of the machine and this container: a pid means this process only there."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def end_with_parent(within_s: float = STOPS_WITHIN_S) -> None:
    """Send this process SIGTERM when the parent that started it is gone.

    If it has not ended `within_s` later, it is killed with its children, because nothing else would
    end them.
    """
    parent = os.environ.get(PARENT)
    if parent is None:
        return

    def watch() -> None:
        pause = threading.Event()
        while os.getppid() == int(parent):
            pause.wait(WATCH_S)
        os.kill(os.getpid(), signal.SIGTERM)
        pause.wait(within_s)
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def _sigterm_with_parent() -> None:
    if PRCTL is not None:
        PRCTL(PR_SET_PDEATHSIG, signal.SIGTERM)


def own_command(*arguments: str) -> list[str]:
    """Return a `minutebook` command; `-P` keeps the working folder out of the module path."""
    return [sys.executable, "-P", "-m", "minutebook", *arguments]
