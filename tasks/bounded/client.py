"""Calls of functions in child processes with limits."""

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from runtime.clock import monotonic
from tasks.bounded.failures import Stopped
from tasks.bounded.limits import Exit, Limits, Over, result_of
from tasks.bounded.server import NAME_SIZE
from tasks.bounded.watch import Watch

# How soon a stop and the end of the time are seen.
CHECK_S = 0.1
# What a child may still do after a stop, such as end its query on a server.
GRACE_S = 2.0
# How long the kernel may take to end a killed child.
KILLED_S = 10.0
LONGEST_ANSWER = 64 << 20
PIECE = 1 << 16
# A time-out of 0 would mean not to wait at all, and fail in another way.
LEAST_S = 0.001
Note = Callable[[str, Any], None]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of `function` (`module:name`) with arguments as JSON, and open files.

    `loads` is whether the function loads modules of the user, from this process's module path.
    """

    function: str
    arguments: Mapping[str, Any]
    files: Sequence[int] = ()
    loads: bool = False


def run(
    call: Call,
    limits: Limits,
    watch: Watch,
    note: Note | None = None,
    ended: Callable[[Exit], None] | None = None,
) -> Any:
    """Return the result of `call`, made in a child process.

    `note` takes what the child reports beside its progress, `ended` what it used. Raises OverLimit,
    InputFailed and Stopped; in each case the child has ended.
    """
    watch.check()
    with _asked(call) as asked:
        is_in_time = asked.follow(call, limits, watch, note)
        exit_ = asked.ended()
    if ended is not None and exit_ is not None:
        ended(exit_)
    if not is_in_time:
        raise Stopped if watch.is_stopped else limits.over(Over.TIME)
    return result_of(asked.answer, exit_, limits)


def stream(call: Call, limits: Limits) -> Generator[bytes]:
    """Yield what a child process writes to the last file of its call, as it comes.

    The child waits while nobody takes the pieces, and ends when the generator is closed. Raises
    OverLimit and InputFailed, also after some pieces.
    """
    output, its_output = socket.socketpair()
    with output, ExitStack() as until_asked:
        until_asked.enter_context(its_output)
        files = (*call.files, its_output.fileno())
        with _asked(replace(call, files=files)) as asked:
            until_asked.close()
            end = monotonic() + limits.time_s
            asked.send(call, limits)
            try:
                while piece := _received(output, end):
                    yield piece
            except TimeoutError:
                raise limits.over(Over.TIME) from None
            is_in_time = asked.answers_by(end + limits.slack_s, Watch(), None)
            exit_ = asked.ended()
    if not is_in_time:
        raise limits.over(Over.TIME)
    result_of(asked.answer, exit_, limits)


def _received(output: socket.socket, end: float) -> bytes:
    """Return the next bytes, none at the end of the output. Raises TimeoutError."""
    output.settimeout(max(end - monotonic(), LEAST_S))
    return output.recv(PIECE)


@dataclass
class _Asked:
    channel: socket.socket
    life: socket.socket
    answer: dict[str, Any] | None = None
    _held: bytes = b""

    def follow(self, call: Call, limits: Limits, watch: Watch, note: Note | None) -> bool:
        """Send the call and take the child's lines up to its answer; return False if it is late."""
        end = monotonic() + limits.time_s + limits.slack_s
        self.send(call, limits)
        return self.answers_by(end, watch, note)

    def answers_by(self, end: float, watch: Watch, note: Note | None) -> bool:
        """Take the child's lines up to its answer; return False if it is late."""
        has_stopped = False
        while self.answer is None:
            if not has_stopped and watch.is_stopped:
                has_stopped, end = True, monotonic() + GRACE_S
                # The child sees the end of its input.
                self.channel.shutdown(socket.SHUT_WR)
            if monotonic() >= end:
                return False
            try:
                piece = self.channel.recv(PIECE)
            except TimeoutError:
                continue
            if not piece:
                break
            self._take(piece, watch, note)
        return True

    def ended(self) -> Exit | None:
        """Return the end of the child, which is killed if it has not answered."""
        if self.answer is None:
            self.life.shutdown(socket.SHUT_WR)
        self.life.settimeout(KILLED_S)
        with contextlib.suppress(OSError, ValueError), self.life.makefile("rb") as stream:
            return Exit(**json.loads(stream.readline()))
        return None

    def send(self, call: Call, limits: Limits) -> None:
        """Send the call."""
        request = {
            "arguments": call.arguments,
            "limits": {"memory_mb": limits.memory_mb, "cpu_s": limits.cpu_s},
            "path": sys.path if call.loads else None,
        }
        self.channel.settimeout(limits.time_s)
        # A child that ended at once is reported by its end.
        with contextlib.suppress(OSError):
            self.channel.sendall(json.dumps(request, default=_plain).encode() + b"\n")
        self.channel.settimeout(CHECK_S)

    def _take(self, piece: bytes, watch: Watch, note: Note | None) -> None:
        *lines, self._held = (self._held + piece).split(b"\n")
        if len(self._held) > LONGEST_ANSWER:
            self.answer = {"error": f"answers with more than {LONGEST_ANSWER} bytes"}
        for line in lines:
            found = json.loads(line)
            if "progress" in found:
                watch.progress(*found["progress"])
            elif "note" in found:
                if note is not None:
                    note(*found["note"])
            else:
                self.answer = found


def _plain(value: object) -> object:
    """Return an immutable mapping, such as an app's settings, as an object; all else as text."""
    return dict(value) if isinstance(value, Mapping) else str(value)


@contextmanager
def _asked(call: Call) -> Iterator[_Asked]:
    """Yield the connection to a new child; the child ends with the block."""
    channel, its_channel = socket.socketpair()
    life, its_life = socket.socketpair()
    with channel, life:
        with its_channel, its_life:
            _request(call.function, [its_channel.fileno(), its_life.fileno(), *call.files])
        yield _Asked(channel, life)


class _Server:
    """The server of this process; its control connection is its standard input."""

    def __init__(self) -> None:
        self.control, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tasks.bounded.server"],
                stdin=theirs.fileno(),
                # Standard error: what user code prints belongs into the log.
                stdout=2,
                # Each arena reserves address space, which the limit of memory counts.
                env={**os.environ, "MALLOC_ARENA_MAX": "2"},
                # Ctrl-C reaches only this process.
                start_new_session=True,
            )

    def close(self) -> None:
        """End the server and its children."""
        self.control.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(KILLED_S)


_lock = threading.Lock()
_servers: list[_Server] = []


def _request(function: str, files: list[int]) -> None:
    """Ask this process's server for a child; start the server if there is none."""
    name = function.ljust(NAME_SIZE).encode()
    with _lock:
        if _servers and _servers[0].process.poll() is not None:
            _servers.pop().close()
        if not _servers:
            _servers.append(_Server())
        socket.send_fds(_servers[0].control, [name], files)


def _forget() -> None:
    """Let a forked process start a server of its own."""
    global _lock  # noqa: PLW0603 - another thread may have held it during the fork
    _lock = threading.Lock()
    for server in _servers:
        server.control.close()
        # It is not a child of this process: subprocess must not wait for it.
        server.process.returncode = 0
    _servers.clear()


@atexit.register
def close() -> None:
    """End this process's server; the next call starts another."""
    with _lock:
        while _servers:
            _servers.pop().close()


os.register_at_fork(after_in_child=_forget)
