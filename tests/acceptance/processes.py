"""Real processes of ours, and no one left behind: all carry one mark in their environment."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryFile
from typing import IO, Any

import psutil

from runtime.clock import wait_for
from tests.acceptance.warm import Forked, is_warm, warm

ROOT = Path(__file__).resolve().parents[2]
MARK = "MINUTEBOOK_TEST"
# Limits, not expectations: they cost nothing while all goes well, and a busy machine needs them.
# Within the first is a lease, the sweep's own caution after it, and the next tick.
SOON_S = 90.0
LONGEST_RUN_S = 120.0
Streams = tuple[IO[Any], IO[Any]]


def until(
    condition: Callable[[], bool], what: str | Callable[[], str], timeout_s: float = SOON_S
) -> None:
    """Wait until `condition()` holds; fail with `what` when it does not in time."""
    if not wait_for(condition, timeout_s):
        told = what if isinstance(what, str) else what()
        raise AssertionError(f"not within {timeout_s:g} s: {told}")


@dataclass
class Process:
    """One process that a test started, with what it wrote to stderr."""

    name: str
    popen: subprocess.Popen[bytes] | Forked
    log: Path

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def is_alive(self) -> bool:
        return self.popen.poll() is None

    def send(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def freeze(self) -> None:
        """Stop it where it is; return once it stands still."""
        self.send(signal.SIGSTOP)
        process = psutil.Process(self.pid)
        until(lambda: process.status() == psutil.STATUS_STOPPED, f"{self.name} frozen")

    def thaw(self) -> None:
        self.send(signal.SIGCONT)

    def freeze_tree(self) -> None:
        """Stop it and its children where they are."""
        self.freeze()
        freeze_tree(self.pid)

    def kill(self) -> None:
        """Kill it as the kernel would, it alone; return when it is gone."""
        self.send(signal.SIGKILL)
        self.popen.wait(SOON_S)

    def ended(self, timeout_s: float = SOON_S) -> int:
        """Wait for its end; return its exit code."""
        try:
            return self.popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end:\n{self.text()[-3000:]}") from None

    def children(self) -> list[int]:
        return [child.pid for child in psutil.Process(self.pid).children(recursive=True)]

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def said(self, text: str, times: int = 1, timeout_s: float = SOON_S) -> None:
        """Wait until it wrote `text` so many times."""
        if not wait_for(lambda: self.text().count(text) >= times, timeout_s):
            raise AssertionError(f"{self.name} did not say {text!r}:\n{self.text()[-3000:]}")


@dataclass
class Processes:
    """All processes of one test: started with one environment, killed together at the end."""

    folder: Path
    environment: dict[str, str]
    mark: str = field(default_factory=lambda: token_hex(8))
    started: list[Process] = field(default_factory=list)
    _sessions: set[int] = field(default_factory=set)

    def start(
        self,
        name: str,
        command: Sequence[str],
        settings: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> Process:
        """Start a process in a session of its own, standing in `folder`."""
        log = self.folder / f"{len(self.started)}-{name}.log"
        place = folder or self.folder
        with log.open("wb") as file:
            popen = self._open(command, settings or {}, place, (file, file))
        process = Process(name, popen, log)
        self.started.append(process)
        return process

    def run(
        self,
        command: Sequence[str],
        settings: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, standing in `folder`."""
        with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
            popen = self._open(command, settings or {}, folder or self.folder, (out, err))
            try:
                code = popen.wait(LONGEST_RUN_S)
            finally:
                popen.send_signal(signal.SIGKILL)
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(command, code, out.read(), err.read())

    def left(self) -> list[psutil.Process]:
        """Return every process that stems from this test and still runs."""
        found = []
        for process in psutil.process_iter():
            try:
                if self._is_ours(process) and not _is_over(process):
                    found.append(process)
            except (psutil.AccessDenied, psutil.NoSuchProcess, ProcessLookupError):
                continue
        return found

    def kill_all(self) -> None:
        until(self._kill_those_left, "all processes of the test are gone")
        for process in self.started:
            process.popen.wait(SOON_S)

    def _open(
        self, command: Sequence[str], settings: Mapping[str, str], folder: Path, streams: Streams
    ) -> subprocess.Popen[bytes] | Forked:
        environment = self._environment(settings)
        if is_warm(command, environment):
            popen = warm().start(command, environment, folder, streams)
            self._sessions.add(popen.pid)
            return popen
        return subprocess.Popen(
            command,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=streams[0],
            stderr=streams[1],
            start_new_session=True,
        )

    def _is_ours(self, process: psutil.Process) -> bool:
        # A Valkey server overwrites its environment with its title: it is known by its folder.
        # A forked process shows the environment of the one that forked it: by its session.
        home = str(self.folder.parent)
        return (
            os.getsid(process.pid) in self._sessions
            or process.environ().get(MARK) == self.mark
            or process.cwd().startswith(home)
        )

    def _kill_those_left(self) -> bool:
        found = self.left()
        for process in found:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        return not found

    def _environment(self, settings: Mapping[str, str]) -> dict[str, str]:
        inherited = {
            key: value
            for key, value in os.environ.items()
            # Many short processes: they share what one has compiled.
            if key != "PYTHONDONTWRITEBYTECODE"
            and not key.startswith(("SCHED_", "MINUTEBOOK_", "PYTEST_", "COV_"))
        }
        # Set by a module of ours that another test of this process may have imported.
        inherited.pop("REMAP_SIGTERM", None)
        return {**inherited, **self.environment, **settings, MARK: self.mark}


def _is_over(process: psutil.Process) -> bool:
    try:
        return process.status() in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    except psutil.NoSuchProcess:
        return True


def freeze_tree(pid: int) -> None:
    """Stop a process and its children where they are."""
    process = psutil.Process(pid)
    process.suspend()
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            child.suspend()


def thaw_tree(pid: int) -> None:
    """Let a process and its children go on."""
    process = psutil.Process(pid)
    # The parent first: it must reap children, and gone ones block no other.
    process.resume()
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            child.resume()


def kill(pid: int) -> None:
    """Kill a process that is not a child of ours; return when it is gone."""
    process = psutil.Process(pid)
    process.kill()
    until(lambda: _is_over(process), f"{pid} is gone")


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]
