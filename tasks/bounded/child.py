"""A child process: one call of one function, within its limits.

Its standard input is the channel to the client, with lines of JSON: the call comes in; notes and
one answer go out. The client closes its direction to ask for a stop, and so does its death.
"""

import contextlib
import ctypes
import importlib
import json
import math
import os
import resource
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from minutebook.error_text import text_of
from tasks.bounded.limits import GRACE_S, InputFailed, Over, Stopped, Watch

MIB = 1 << 20
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000


class Call:
    """The call of a child: its arguments, open files, watch, and the notes to the client."""

    def __init__(
        self, arguments: Mapping[str, Any], files: list[int], channel: socket.socket
    ) -> None:
        self.arguments = arguments
        self.files = files
        self.watch = Watch(progress=lambda done, total: self.send({"progress": [done, total]}))
        self._channel = channel
        self._lock = threading.Lock()

    def note(self, kind: str, value: Any) -> None:
        """Send the client a note."""
        self.send({"note": [kind, value]})

    def send(self, message: Mapping[str, Any]) -> None:
        """Send the client a note, progress or the answer, as a line of JSON."""
        line = json.dumps(message).encode() + b"\n"
        with self._lock, contextlib.suppress(OSError):
            self._channel.sendall(line)


def main() -> None:
    """Answer the call on the standard input with the result of its function."""
    channel = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    stream = channel.makefile("rb")
    request = json.loads(stream.readline())
    if not request["is_online"]:
        _leave_networks()
    call = Call(request["arguments"], request["files"], channel)
    threading.Thread(target=_await_stop, args=(stream, call.watch), daemon=True).start()
    _answer(request, call)
    # A thread of a library may still run.
    os._exit(0)


def _answer(request: Mapping[str, Any], call: Call) -> None:
    """Send the result of the function, or why there is none."""
    try:
        module, _, attribute = request["function"].partition(":")
        function: Callable[[Call], Any] = getattr(importlib.import_module(module), attribute)
        if request["memory_mb"] is not None:
            _limit(request["memory_mb"], request["cpu_s"])
        call.send({"result": function(call)})
    except MemoryError:
        call.send({"over": Over.MEMORY})
    except InputFailed as error:
        call.send({"failed": str(error), "permanent": error.permanent})
    except Stopped:
        call.send({"stopped": True})
    except BaseException as error:
        is_memory = "can't start new thread" in str(error)
        call.send({"over": Over.MEMORY} if is_memory else {"error": text_of(error)})


def _leave_networks() -> None:
    """Move to a namespace without a network, if the kernel lets this account make one."""
    unshare = getattr(ctypes.CDLL(None), "unshare", None)
    # Root keeps its rights over files; another account needs a namespace of users as well.
    if unshare is not None and unshare(CLONE_NEWNET) != 0:
        unshare(CLONE_NEWUSER | CLONE_NEWNET)


def _await_stop(stream: BinaryIO, watch: Watch) -> None:
    # PR_SET_PDEATHSIG would follow the thread that started this process: those of downloads end.
    with contextlib.suppress(OSError):
        stream.read(1)
    watch.stop()
    threading.Event().wait(GRACE_S)
    os.killpg(0, signal.SIGKILL)


def _limit(memory_mb: int, cpu_s: float) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = _address_space() + memory_mb * MIB
    # macOS accepts this limit, and ignores it.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    used = resource.getrusage(resource.RUSAGE_SELF)
    # The kernel counts whole seconds.
    whole = math.ceil(cpu_s + used.ru_utime + used.ru_stime)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)


def _address_space() -> int:
    """Return the bytes of memory that this process has mapped, less those it really uses."""
    try:
        pages = Path("/proc/self/statm").read_text().split()
    except OSError:
        return 0
    return (int(pages[0]) - int(pages[1])) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
