"""The server of a process's children: forks one for each request, and reports its end.

It has one thread and no connection, so forking it is safe. It ends with the process that started
it, and its children end with it. Only the standard library is imported here; the modules of the
functions are imported at their first request, before the fork.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
from dataclasses import dataclass
from typing import NoReturn

# The bytes of one request: the name of the child's function.
NAME_SIZE = 128
MOST_FILES = 8
PR_SET_PDEATHSIG = 1
_PRCTL = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True)
class _Job:
    pid: int
    # Closed by the client to end the child; gets one line when the child has ended.
    life: socket.socket


class _Server:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._jobs: dict[int, _Job] = {}
        self._selector = selectors.DefaultSelector()
        self._ended, self._waker = socket.socketpair()

    def serve(self) -> None:
        """Serve until the client is gone."""
        self._waker.setblocking(False)
        self._ended.setblocking(False)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        self._selector.register(self._control, selectors.EVENT_READ)
        self._selector.register(self._ended, selectors.EVENT_READ)
        is_open = True
        while is_open:
            for key, _events in self._selector.select():
                if key.fileobj is self._control:
                    is_open = self._take()
                elif key.fileobj is self._ended:
                    self._reap()
                elif key.data in self._jobs:
                    # The client closed its end.
                    self._selector.unregister(key.fileobj)
                    _kill(key.data)
        for pid in self._jobs:
            _kill(pid)

    def _take(self) -> bool:
        """Start the child of one request; return False at the end of the requests."""
        name, files, _flags, _address = socket.recv_fds(self._control, NAME_SIZE, MOST_FILES)
        if not name:
            return False
        module = name.decode().strip().partition(":")[0]
        with contextlib.suppress(Exception):
            # The child meets the same error, and reports it.
            importlib.import_module(module)
            importlib.import_module("tasks.bounded.child")
        gc.freeze()
        try:
            pid = os.fork()
        except OSError:
            # The client sees that its child is lost; the other children go on.
            for each in files:
                os.close(each)
            return True
        if pid == 0:
            self._become_child(name.decode().strip(), files)
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        channel, life, *others = files
        for each in (channel, *others):
            os.close(each)
        job = _Job(pid, socket.socket(fileno=life))
        self._jobs[pid] = job
        self._selector.register(job.life, selectors.EVENT_READ, pid)
        return True

    def _become_child(self, name: str, files: list[int]) -> NoReturn:
        code = 1
        try:
            parent = os.getppid()
            os.setpgid(0, 0)
            if _PRCTL is not None:
                _PRCTL(PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            channel, _life, *others = files
            _close_all_but(channel, *others)
            if os.getppid() == parent:
                from tasks.bounded.child import run

                run(name, channel, others)
                code = 0
        finally:
            os._exit(code)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._ended.recv(4096):
                pass
        for pid, job in list(self._jobs.items()):
            options = os.WEXITED | os.WNOHANG | os.WNOWAIT
            if os.waitid(os.P_PID, pid, options) is None:
                continue
            # The child's own children; its process id is still taken.
            _kill(pid)
            _pid, status, usage = os.wait4(pid, 0)
            del self._jobs[pid]
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(job.life)
            with contextlib.suppress(OSError), job.life:
                job.life.sendall(_report(status, usage.ru_maxrss, usage.ru_utime + usage.ru_stime))


def _report(status: int, peak: int, cpu_s: float) -> bytes:
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0
    # Linux counts kibibytes, macOS bytes.
    peak_mb = peak / (1 << (20 if sys.platform == "darwin" else 10))
    report = {"signal": number, "code": code, "peak_mb": peak_mb, "cpu_s": cpu_s}
    return json.dumps(report).encode() + b"\n"


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            kill(pid, signal.SIGKILL)


def _close_all_but(*kept: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    start = 3
    for each in sorted(kept):
        os.closerange(start, each)
        start = each + 1
    os.closerange(start, 1 << 16)


def main() -> None:
    """Serve the client at the other end of the standard input."""
    _Server(socket.socket(fileno=os.dup(0))).serve()


if __name__ == "__main__":
    main()
