"""Calls of functions in child processes with limits."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from runtime.clock import monotonic, wait_for
from tasks.bounded.limits import GRACE_S, Limits, Over, Stopped, Watch, result_of

# How soon a stop and the end of the time are seen.
CHECK_S = 0.1
PIECE = 1 << 16
# A time-out of 0 would mean not to wait at all, and fail in another way.
LEAST_S = 0.001
Note = Callable[[str, Any], None]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of `function` (`module:name`) with arguments as JSON, and open files.

    `is_online` is whether it needs a network: without, its process has none where the kernel lets
    this account make namespaces.
    """

    function: str
    arguments: Mapping[str, Any]
    files: Sequence[int] = ()
    is_online: bool = False


def run(call: Call, limits: Limits, watch: Watch, note: Note | None = None) -> Any:
    """Return the result of `call`, made in a child process.

    `note` takes what the child reports beside its progress. Raises OverLimit, InputFailed and
    Stopped; in each case the child has ended.
    """
    watch.check()
    end = monotonic() + limits.time_s + limits.slack_s
    with closing(_Child(call, limits)) as child:
        try:
            is_in_time = child.answers_by(end, watch, note)
        except BaseException:
            # A cancel interrupts the worker before the child was asked to end.
            child.end_in_order(limits.slack_s)
            raise
    if child.answer is None and watch.is_stopped:
        raise Stopped
    if not is_in_time:
        raise limits.over(Over.TIME)
    return result_of(child.answer, child.code, limits)


def stream(call: Call, limits: Limits) -> Generator[bytes]:
    """Yield what a child process writes to the last file of its call, as it comes.

    The child waits while nobody takes the pieces, and ends when the generator is closed. Raises
    OverLimit and InputFailed, also after some pieces.
    """
    end = monotonic() + limits.time_s
    output, its_output = socket.socketpair()
    with output:
        with its_output:
            child = _Child(replace(call, files=(*call.files, its_output.fileno())), limits)
        with closing(child):
            try:
                while piece := _received(output, end):
                    yield piece
            except TimeoutError:
                raise limits.over(Over.TIME) from None
            is_in_time = child.answers_by(end + limits.slack_s, Watch(), None)
    if not is_in_time:
        raise limits.over(Over.TIME)
    result_of(child.answer, child.code, limits)


def _received(output: socket.socket, end: float) -> bytes:
    """Return the next bytes, none at the end of the output. Raises TimeoutError."""
    output.settimeout(max(end - monotonic(), LEAST_S))
    return output.recv(PIECE)


class _Child:
    """A child that was sent its call; `close` ends it, and what it started."""

    def __init__(self, call: Call, limits: Limits) -> None:
        self.answer: dict[str, Any] | None = None
        # How it ended; below 0: by a signal.
        self.code: int | None = None
        self._held = b""
        line = _request(call, limits)
        self._channel, its_channel = socket.socketpair()
        try:
            with its_channel:
                self._process = _started(its_channel.fileno(), call.files)
        except OSError as error:
            self._channel.close()
            raise limits.error(f"got no process: {error}") from None
        self._channel.settimeout(limits.time_s)
        # A child that ended at once is reported by its end.
        with contextlib.suppress(OSError):
            self._channel.sendall(line)
        self._channel.settimeout(CHECK_S)

    def answers_by(self, end: float, watch: Watch, note: Note | None) -> bool:
        """Take the child's lines up to its answer, or its end; return False if it is late."""
        has_stopped = False
        while self.answer is None:
            if not has_stopped and watch.is_stopped:
                has_stopped, end = True, monotonic() + GRACE_S
                # The child sees the end of its input.
                self._channel.shutdown(socket.SHUT_WR)
            if monotonic() >= end:
                return False
            try:
                piece = self._channel.recv(PIECE)
            except TimeoutError:
                continue
            except ConnectionResetError:
                piece = b""
            if not piece:
                # It closed its end: its own signal or code comes before ours.
                wait_for(self._has_ended, GRACE_S)
                break
            self._take(piece, watch, note)
        return True

    def end_in_order(self, within_s: float) -> None:
        """Ask the child to end by itself, and wait for that."""
        if within_s:
            with contextlib.suppress(OSError):
                self._channel.shutdown(socket.SHUT_WR)
            wait_for(self._has_ended, within_s)

    def close(self) -> None:
        """End the child, and keep how it ended."""
        self._channel.close()
        pid = self._process.pid
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
            self.code = self._process.wait()

    def _has_ended(self) -> bool:
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, options) is not None

    def _take(self, piece: bytes, watch: Watch, note: Note | None) -> None:
        *lines, self._held = (self._held + piece).split(b"\n")
        for line in lines:
            found = json.loads(line)
            if "progress" in found:
                watch.progress(*found["progress"])
            elif "note" in found:
                if note is not None:
                    note(*found["note"])
            else:
                self.answer = found


def _request(call: Call, limits: Limits) -> bytes:
    """Return the line that a child reads first."""
    request = {
        "function": call.function,
        "arguments": call.arguments,
        "files": list(call.files),
        "is_online": call.is_online,
        "memory_mb": limits.memory_mb,
        "cpu_s": limits.cpu_s,
    }
    return json.dumps(request, default=_plain).encode() + b"\n"


def _started(channel: int, files: Sequence[int]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "tasks.bounded.child"],
        stdin=channel,
        # Standard error: what a library prints belongs into the log.
        stdout=2,
        pass_fds=files,
        # Each arena reserves address space, which the limit of memory counts.
        env={**os.environ, "MALLOC_ARENA_MAX": "2"},
        # Ctrl-C reaches only this process; and a group ends as one.
        start_new_session=True,
    )


def _plain(value: object) -> object:
    """Return an immutable mapping, such as an app's settings, as an object; all else as text."""
    return dict(value) if isinstance(value, Mapping) else str(value)
