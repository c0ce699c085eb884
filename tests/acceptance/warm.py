"""Processes of ours without their second of imports: forked by one that has them loaded.

A process of its own all the same: a child of the test, in a session of its own, with its own
environment, folder and end. What it leaves out is the start of Python, which the
workers of other applications and, where a test looks for them, the children of `minutebook up` go
through in full.
"""

import atexit
import ctypes
import gc
import importlib
import json
import math
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, NoReturn

from runtime.clock import wait_for

ROOT = Path(__file__).resolve().parents[2]
SERVER = str(ROOT / "scheduler_server.py")
OURS = ["-P", "-m", "minutebook"]
# Not modules that take something from their process while they are imported: the environment
# (`billiard`, by `processes.worker`), a lock that forks share (`tasks.lease`), a thread (DuckDB, by
# the built-in steps).
LOADED = (
    *("cli.main", "processes.daemon", "cli.actions", "cli.runs", "cli.users"),
    *("cli.status", "cli.pauses", "cli.apps", "processes.up", "processes.web"),
    *("kombu.transport.redis", "sqlalchemy.dialects.sqlite", "psycopg"),
)
LEFT_OUT = {"billiard.common", "celery.apps.worker", "processes.worker", "tasks.lease", "duckdb"}
LARGEST = 1 << 18
# Far longer than a fork takes on a busy machine.
ANSWER_S = 120.0
CLONE_PARENT = 0x8000
SYS_CLONE = {"x86_64": 56, "aarch64": 220}


def is_warm(command: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether such a process can be forked: ours, without what Python loads at its start."""
    is_ours = command[0] == sys.executable and (command[1] == SERVER or list(command[1:4]) == OURS)
    folders = environment.get("PYTHONPATH", "").split(":")
    has_hook = any((Path(folder) / "sitecustomize.py").exists() for folder in folders if folder)
    return is_ours and not has_hook and os.uname().machine in SYS_CLONE


@dataclass
class Forked:
    """A process that was forked for us; used as one that `subprocess` started."""

    pid: int
    args: Sequence[str]
    returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float = math.inf) -> int:
        """Wait for its end; return the exit code, or raise subprocess.TimeoutExpired."""
        wait_for(lambda: self.poll() is not None, timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


class Warm:
    """A process with everything loaded, that forks those that are asked for."""

    def __init__(
        self, channel: socket.socket, process: subprocess.Popen[bytes] | None = None
    ) -> None:
        self._ours, self._process = channel, process

    def start(
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path,
        streams: tuple[IO[Any], IO[Any]], *, with_children: bool = False,
    ) -> Forked:  # fmt: skip
        """Fork a process that runs `command`, one of ours; `streams` are its stdout and stderr.

        With `with_children`, its children of ours are forked too.
        """
        asked = {
            "command": list(command), "environment": dict(environment), "folder": str(folder),
            "with_children": with_children,
        }  # fmt: skip
        descriptors = [stream.fileno() for stream in streams]
        socket.send_fds(self._ours, [json.dumps(asked).encode()], descriptors)
        is_there, _, _ = select.select([self._ours], [], [], ANSWER_S)
        answer = self._ours.recv(64) if is_there else b""
        if not answer:
            # A late answer would be taken for that to the next test.
            warm.cache_clear()
            self._ours.close()
            raise RuntimeError("the warm process does not answer")
        return Forked(int(answer), list(command))

    def end(self) -> None:
        """End the process; what it forked stays."""
        self._ours.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@lru_cache(maxsize=1)
def warm() -> Warm:
    """Return this process's own; it ends with us."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-P", __file__, str(theirs.fileno())]
        # Nothing of the test's own files is inherited.
        process = subprocess.Popen(
            command, env=environment, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
        )
    made = Warm(ours, process)
    atexit.register(made.end)
    return made


def _serve(channel: socket.socket) -> dict[str, Any]:
    """Fork what is asked for; return, in each fork, what it was asked."""
    while True:
        text, descriptors, _, _ = socket.recv_fds(channel, LARGEST, 2)
        if not text:
            os._exit(0)
        pid = _fork_for_parent()
        if pid == 0:
            channel.close()
            return _become(json.loads(text), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        channel.send(str(pid).encode())


def _fork_for_parent() -> int:
    """Fork a child of our parent: the test waits for it and gets its exit code."""
    python = ctypes.pythonapi
    call = ctypes.PyDLL(None, use_errno=True).syscall
    number = SYS_CLONE[os.uname().machine]
    python.PyOS_BeforeFork()
    pid = int(call(number, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0))
    if pid == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    return pid


def _become(asked: dict[str, Any], descriptors: Sequence[int]) -> dict[str, Any]:
    """Take over what makes a process its own."""
    os.setsid()
    with open(os.devnull, "rb") as nothing:
        for ours, its in zip((0, 1, 2), (nothing.fileno(), *descriptors), strict=True):
            os.dup2(its, ours)
    for descriptor in descriptors:
        os.close(descriptor)
    # As on a terminal: what one writes to both comes in order.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    sys.path[1:1] = [one for one in os.environ.get("PYTHONPATH", "").split(":") if one]
    return asked


def _fork_own_children() -> None:
    """Let the children of this process, a `minutebook up`, be forked as well.

    By a process that is like it is now: later it has an engine, which a fork must not share.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        ours.close()
        _run(_serve(theirs))
    theirs.close()
    supervisor = importlib.import_module("runtime.supervisor")
    forking = Warm(ours)

    def start(command: Sequence[str], *, env: Mapping[str, str], **options: Any) -> Any:
        if not is_warm(command, env):
            return subprocess.Popen(command, env=env, **options)
        with open(os.devnull, "wb") as nothing:
            return forking.start(command, env, Path.cwd(), (nothing, sys.stderr))

    supervisor.subprocess = SimpleNamespace(  # type: ignore[attr-defined]
        Popen=start, DEVNULL=subprocess.DEVNULL
    )


def _run(asked: Mapping[str, Any]) -> NoReturn:
    """Run one of our two entries as Python would, and end as Python does, but for the clearing.

    To clear what is loaded, Python would write to all of it: a fork would copy it all before.
    """
    command = asked["command"]
    if asked["with_children"]:
        _fork_own_children()
    try:
        if command[1] == SERVER:
            sys.argv = list(command[1:])
            runpy.run_path(SERVER, run_name="__main__")
        else:
            sys.argv = ["minutebook", *command[4:]]
            runpy.run_module("minutebook", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ending:
        code = _exit_code(ending)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    _end(code)


def _end(code: int) -> NoReturn:
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _exit_code(ending: SystemExit) -> int:
    if ending.code is None or isinstance(ending.code, int):
        return ending.code or 0
    sys.stderr.write(f"{ending.code}\n")
    return 1


if __name__ == "__main__":
    for _name in LOADED:
        importlib.import_module(_name)
    assert not LEFT_OUT & set(sys.modules)
    assert threading.active_count() == len(list(Path("/proc/self/task").iterdir())) == 1
    # A fork need not look through what is loaded for garbage, neither while it runs nor at its end.
    gc.collect()
    gc.freeze()
    _run(_serve(socket.socket(fileno=int(sys.argv[1]))))
