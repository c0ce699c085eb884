"""Runs one program in a process group of its own, and ends the group in each case.

Started by a worker as `supervisor.py LIFE REPORT FOLDER PROGRAM ARGUMENT…`; it has the standard
library only. `LIFE` is a pipe: a byte asks the group to end (TERM, KILL a little later), its end
(the worker died) kills the group. `REPORT` gets a line with the group's number, and a line of JSON
when the group has ended.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from typing import Any, NoReturn

KILL_AFTER_S = 3.0
PR_SET_PDEATHSIG = 1
_PRCTL = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None


def main() -> None:
    """Run the program, end its group, report."""
    life, report = int(sys.argv[1]), int(sys.argv[2])
    woken, waker = os.pipe()
    for each in (woken, waker):
        os.set_blocking(each, False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(waker)
    failed, at_exec = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(sys.argv[3], sys.argv[4:], at_exec)
    os.close(at_exec)
    _report(report, pid)
    # This read ends when the program starts: exec closes the other end.
    fault = os.read(failed, 1024)
    found: dict[str, Any] = {"error": fault.decode(errors="replace")} if fault else {}
    was_asked = _await_end(pid, life, woken)
    # The group is named after the program, which is not reaped yet: no other can have this number.
    _signal(pid, signal.SIGKILL)
    _pid, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    _report(report, {"code": code, "was_asked": was_asked, **found})


def _report(report: int, value: Any) -> None:
    # The worker may be gone.
    with contextlib.suppress(OSError):
        os.write(report, json.dumps(value).encode() + b"\n")


def _become(folder: str, program: list[str], at_exec: int) -> NoReturn:
    what = program[0]
    try:
        parent = os.getppid()
        os.setsid()
        if _PRCTL is not None:
            _PRCTL(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(127)
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            # Numbers that the C library keeps for itself cannot be set.
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        what = folder
        os.chdir(folder)
        what = program[0]
        # All but the pipe to report a failure, which exec closes.
        os.closerange(3, at_exec)
        os.closerange(at_exec + 1, 1 << 12)
        os.execvp(program[0], program)  # noqa: S606 - no shell is wanted
    except OSError as error:
        os.write(at_exec, f"{what}: {error.strerror}".encode())
    finally:
        os._exit(127)


def _await_end(pid: int, life: int, woken: int) -> bool:
    """Wait until the program has ended; return whether its group was asked to end."""
    was_asked = False
    kill_at: float | None = None
    watched = [life, woken]
    while not _has_ended(pid):
        left = None if kill_at is None else max(0.0, kill_at - time.monotonic())
        ready, _, _ = select.select(watched, [], [], left)
        if woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(woken, 4096)
        if life in ready:
            was_asked = True
            if os.read(life, 1):
                _signal(pid, signal.SIGTERM)
                kill_at = time.monotonic() + KILL_AFTER_S
            else:
                watched.remove(life)
                kill_at = time.monotonic()
        if kill_at is not None and time.monotonic() >= kill_at:
            _signal(pid, signal.SIGKILL)
            kill_at = None
    return was_asked


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


if __name__ == "__main__":
    main()
