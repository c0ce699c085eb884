"""Child processes of one command: started, restarted when they die, stopped together."""

import contextlib
import ctypes
import fcntl
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from runtime.clock import monotonic, wait_for

logger = logging.getLogger("minutehand.up")

PARENT = "MINUTEHAND_PARENT_PID"
LONGEST_PAUSE_S = 30.0
# A child that lived this long starts again at once.
HEALTHY_S = 60.0
WATCH_S = 0.5
# Linux only; elsewhere the next `up` stops what a killed one left behind.
PRCTL = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None
PR_SET_PDEATHSIG = 1


class AlreadyRunning(RuntimeError):
    """Another process holds the lock of this folder; the text has its pid."""


@dataclass
class Child:
    """One child: its command, and when it may be started again."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    # For a program that is not ours and cannot call `end_with_parent`.
    is_foreign: bool = False
    process: subprocess.Popen[bytes] | None = None
    _started: float = 0.0
    _pause_s: float = 0.0
    _start_at: float = 0.0

    def start(self) -> None:
        """Start the process in a session of its own: Ctrl-C reaches the parent alone."""
        self._started = monotonic()
        self.process = subprocess.Popen(
            self.command,
            env={**os.environ, **self.environment, PARENT: str(os.getpid())},
            stdin=subprocess.DEVNULL,
            # Logs go to stderr. Celery tells its terminal of keys that nobody here can press.
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_sigterm_with_parent if self.is_foreign and PRCTL else None,  # noqa: PLW1509
        )

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self.process is not None and self.process.poll() is None

    def keep_alive(self) -> None:
        """Start the process again if it died, after a pause that doubles up to 30 s."""
        if self.is_alive:
            return
        if self._start_at == 0.0:
            is_sudden = monotonic() - self._started < HEALTHY_S
            self._pause_s = min(LONGEST_PAUSE_S, max(1.0, self._pause_s * 2)) if is_sudden else 0.0
            self._start_at = monotonic() + self._pause_s
            code = self.process.returncode if self.process else None
            logger.error("%s ended with %s; starting it again", self.name, code)
        if monotonic() >= self._start_at:
            self._start_at = 0.0
            self.start()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if the process still runs."""
        if self.process is not None and self.is_alive:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)


def stop_all(children: Sequence[Child], timeout_s: float) -> None:
    """Stop children side by side: SIGTERM, and SIGKILL after the time-out."""
    for child in children:
        child.signal(signal.SIGTERM)
    if not wait_for(lambda: not any(child.is_alive for child in children), timeout_s):
        for child in children:
            if child.is_alive:
                logger.warning("%s does not stop; killing it", child.name)
            child.signal(signal.SIGKILL)
    for child in children:
        if child.process is not None:
            child.process.wait()


@contextmanager
def folder_lock(folder: Path) -> Iterator[IO[str]]:
    """Hold the lock of a home folder; raises AlreadyRunning with the holder's pid."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "up.lock"
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            raise AlreadyRunning(
                f"minutehand up already runs on {folder} with pid {file.read().strip()}"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield file


def end_with_parent() -> None:
    """Send ourselves SIGTERM when the parent that `Child.start` named is gone."""
    parent = os.environ.get(PARENT)
    if parent is None:
        return

    def watch() -> None:
        pause = threading.Event()
        while os.getppid() == int(parent):
            pause.wait(WATCH_S)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def _sigterm_with_parent() -> None:
    if PRCTL is not None:
        PRCTL(PR_SET_PDEATHSIG, signal.SIGTERM)


def own_command(*arguments: str) -> list[str]:
    """Return a command of ours; `-P` keeps the folder we stand in out of the module path."""
    return [sys.executable, "-P", "-m", "minutehand", *arguments]
