"""The child process that runs one program: the leader of the program's process group."""

import errno
import os
import signal
import subprocess
from collections import deque
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from tempfile import TemporaryFile
from threading import Lock, Thread
from typing import IO, Any

from runtime.hiding import hidden
from tasks.bounded.child import Call
from tasks.bounded.limits import InputFailed

WRITE_EVERY_S = 0.5
# As many lines as an operation keeps; further lines within one write are only counted.
MOST_LINES = 200
LONGEST_LINE = 2_000
# What is kept of a line until it is shown: secrets are hidden where they stand whole.
LONGEST_KEPT = 1 << 16
# How long the rest of the output may take: what the program left running may hold it open.
REST_S = 0.5
# The program begins with these as they are by default, also where the worker ignores them.
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)
# No process could start; anything else stays wrong until the action or the machine changes.
NO_ROOM = {errno.EAGAIN, errno.ENOMEM}


def run(call: Call) -> dict[str, Any]:
    """Run the call's program to its end, and return how it ended; its output comes as notes."""
    for number in SIGNALS:
        # What the program or a stop sends to the group ends all of it but this process.
        signal.signal(number, lambda _number, _frame: None)
    process = _started(call.arguments)
    outputs = (_Output(process.stdout, call, "INFO"), _Output(process.stderr, call, "WARNING"))
    with call.watch.interrupted_by(partial(os.killpg, 0, signal.SIGTERM)):
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(WRITE_EVERY_S)
            for output in outputs:
                output.write()
    for output in outputs:
        output.join(REST_S)
        output.write()
    return {
        "code": process.returncode,
        "was_asked": call.watch.is_stopped,
        "size": sum(output.size for output in outputs),
        "last_line": outputs[1].last or outputs[0].last,
    }


def _started(its: Mapping[str, Any]) -> "subprocess.Popen[bytes]":
    with TemporaryFile() as stdin:
        stdin.write(its["input"].encode())
        stdin.seek(0)
        try:
            return subprocess.Popen(
                its["program"],
                cwd=its["folder"],
                env=its["environment"],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            text = f"cannot start: {error.filename}: {error.strerror}"
            raise InputFailed(text, permanent=error.errno not in NO_ROOM) from None


class _Output(Thread):
    """Reads one stream of the program, as fast as it comes; `last` is the last line with text."""

    def __init__(self, stream: IO[bytes] | None, call: Call, level: str) -> None:
        super().__init__(daemon=True)
        assert stream is not None  # noqa: S101 - a pipe
        self._stream = stream
        self._note = partial(call.note, level)
        self._secrets: Collection[str] = call.arguments["secrets"]
        self._lock = Lock()
        self._lines: deque[bytes] = deque(maxlen=MOST_LINES)
        self._taken = 0
        self.last = ""
        self.size = 0
        self.start()

    def run(self) -> None:
        """Take the lines up to the end of the stream."""
        is_new = True
        for piece in iter(partial(self._stream.readline, LONGEST_KEPT), b""):
            self.size += len(piece)
            if is_new:
                with self._lock:
                    self._lines.append(piece)
                    self._taken += 1
            # The rest of a longer line is dropped.
            is_new = piece.endswith(b"\n")

    def write(self) -> None:
        """Report the lines that were taken since the last time."""
        with self._lock:
            lines, left_out = list(self._lines), self._taken - len(self._lines)
            self._lines.clear()
            self._taken = 0
        if left_out:
            self._note(f"({left_out} lines are left out here)")
        for line in map(self._shown, lines):
            self._note(line)
            if line.strip():
                self.last = line

    def _shown(self, taken: bytes) -> str:
        line = taken.decode(errors="replace").rstrip("\r\n")
        line = hidden(line.replace("\0", "\N{REPLACEMENT CHARACTER}"), self._secrets)
        return line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "…"
