"""Functions that exceed each limit of a child process, or end it."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

from data.failures import SourceFailed
from tasks.bounded.child import Call

MIB = 1 << 20


def double(call: Call) -> Any:
    """Return the arguments with twice the number, after a note."""
    call.note("log", "doubling")
    call.watch.progress(1, 2)
    return {**call.arguments, "number": 2 * call.arguments["number"]}


def repeat(call: Call) -> Any:
    return call.arguments


def eat(_call: Call) -> Any:
    eaten = []
    while True:
        eaten.append(b"x" * MIB)


def spin(_call: Call) -> Any:
    while True:
        pass


def sleep(_call: Call) -> Any:
    """Wait without end, deaf to a stop."""
    Event().wait()


def heed(call: Call) -> Any:
    """Wait until the client asks for a stop."""
    while True:
        call.watch.check()
        Event().wait(0.01)


def crash(call: Call) -> Any:
    """End by a signal."""
    os.kill(os.getpid(), signal.Signals[call.arguments["signal"]])


def leave(_call: Call) -> Any:
    os._exit(3)


def fail(_call: Call) -> Any:
    """Fail as a source does."""
    raise SourceFailed("the source is empty", permanent=True)


def breed(call: Call) -> Any:
    """Start a process that outlives this one, unless its group is ended."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(call.arguments["file"]).write_text(str(child.pid))
    Event().wait()


def read(call: Call) -> Any:
    """Return the text of the passed file, and what else is open."""
    with os.fdopen(call.files[0]) as stream:
        return stream.read()


def connect(call: Call) -> Any:
    with socket.create_connection(("127.0.0.1", call.arguments["port"]), 10):
        return "connected"


def mistake(_call: Call) -> Any:
    return {1j}


def look(_call: Call) -> Any:
    """Return the limits and the environment as this process sees them."""
    limits = Path("/proc/self/limits").read_text()
    cores = next(line for line in limits.splitlines() if "core" in line)
    return {"cores": cores.split()[4], "command": Path("/proc/self/cmdline").read_text()}


def write(call: Call) -> Any:
    """Write three pieces, and then do what the call says."""
    os.write(call.files[0], b"abc" * 100_000)
    return globals()[call.arguments["then"]](call)
