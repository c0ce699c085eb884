"""The first process of a container, where the container has no init of its own.

Only that process can clean up after programs whose parents are gone. If it does not, each leaves an
entry in the table of processes, until the container may start no more.
"""

import os
import signal
from contextlib import suppress

FIRST_PID = 1
# Beyond it, a code is the number of the signal that ended the process, as shells have it.
SIGNALLED = 128
# `si_code` of what a terminal sends to all processes in its foreground.
SI_KERNEL = 0x80
# They are the kernel's answer to a fault of this process itself.
FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}


def leave_first_place() -> None:
    """If this process is the first of its container, go on as a child of it.

    The first process then passes signals on, cleans up after orphans, and ends as the child does.
    Call it before any thread is started.
    """
    if os.getpid() == FIRST_PID:
        go_on_as_child()


def go_on_as_child() -> None:
    """Return in a child of this process, which does nothing but serve it, and ends with it."""
    taken = signal.valid_signals() - FAULTS
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, taken)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
        return
    code = None
    while code is None:
        came = signal.sigwaitinfo(taken)
        if came.si_signo == signal.SIGCHLD:
            code = _code_after_reaping(child)
        elif came.si_code != SI_KERNEL:
            with suppress(ProcessLookupError):
                os.kill(child, came.si_signo)
    os._exit(code)


def _code_after_reaping(child: int) -> int | None:
    """Reap all that has ended; return the exit code of `child` if it is among them."""
    code = None
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
    return SIGNALLED - code if code is not None and code < 0 else code
