"""A child process: one call of one function, within its limits.

The channel carries lines of JSON: the call comes in; notes and one answer go out. The client closes
its direction to ask for a stop.
"""

import contextlib
import importlib
import json
import math
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from minutebook.error_text import text_of
from tasks.bounded.failures import InputFailed, Stopped
from tasks.bounded.limits import Over
from tasks.bounded.watch import Watch

MIB = 1 << 20


@dataclass
class Call:
    """The call of a child: its arguments, open files, watch, and the notes to the client."""

    arguments: Mapping[str, Any]
    files: list[int]
    _channel: socket.socket
    _limits: Mapping[str, Any]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    watch: Watch = field(init=False)

    def __post_init__(self) -> None:
        self.watch = Watch(progress=lambda done, total: self.send({"progress": [done, total]}))

    def note(self, kind: str, value: Any) -> None:
        """Send the client a note."""
        self.send({"note": [kind, value]})

    def send(self, message: Mapping[str, Any]) -> None:
        """Send the client a note, or progress."""
        self.write(json.dumps(message))

    def write(self, line: str) -> None:
        """Send the client a line of JSON."""
        with self._lock, contextlib.suppress(OSError):
            self._channel.sendall(line.encode() + b"\n")

    def limit(self) -> None:
        """Set the limits: before it, trusted code may load what it needs."""
        _limit(self._limits)


def run(name: str, channel: int, files: list[int]) -> None:
    """Answer the call on `channel` with the result of the function `name` (`module:function`)."""
    with socket.socket(fileno=channel) as connection:
        stream = connection.makefile("rb")
        request = json.loads(stream.readline())
        call = Call(request["arguments"], files, connection, request["limits"])
        threading.Thread(target=_await_stop, args=(stream, call.watch), daemon=True).start()
        call.write(_answered(name, request, call))


def _answered(name: str, request: Mapping[str, Any], call: Call) -> str:
    """Return the answer as JSON: the result of the function, or why there is none."""
    try:
        module, _, attribute = name.partition(":")
        function: Callable[[Call], Any] = getattr(importlib.import_module(module), attribute)
        if request["path"]:
            # The function loads modules of the user, and sets the limits after that.
            sys.path[:] = request["path"]
        else:
            call.limit()
        return json.dumps({"result": function(call)})
    except MemoryError:
        return json.dumps({"over": Over.MEMORY})
    except InputFailed as error:
        return json.dumps({"failed": str(error), "permanent": error.permanent})
    except Stopped:
        return json.dumps({"stopped": True})
    except BaseException as error:
        if "can't start new thread" in str(error):
            return json.dumps({"over": Over.MEMORY})
        return json.dumps({"error": text_of(error)})


def _await_stop(stream: BinaryIO, watch: Watch) -> None:
    with contextlib.suppress(OSError):
        stream.read(1)
    watch.stop()


def _limit(limits: Mapping[str, Any]) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    space = _address_space()
    # macOS accepts this limit, and ignores it.
    with contextlib.suppress(ValueError, OSError):
        most = space + limits["memory_mb"] * MIB
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = limits["cpu_s"] + used.ru_utime + used.ru_stime
    whole = max(1, math.ceil(cpu_s))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))
    # The kernel counts whole seconds for the limit above.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, limits["cpu_s"])


def _address_space() -> int:
    """Return the bytes of memory that this process has mapped, less those it really uses."""
    try:
        pages = Path("/proc/self/statm").read_text().split()
    except OSError:
        return 0
    return (int(pages[0]) - int(pages[1])) * os.sysconf("SC_PAGE_SIZE")
