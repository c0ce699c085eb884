"""The child process that runs one program: the leader of the program's process group."""

import contextlib
import errno
import logging
import os
import selectors
import signal
import subprocess
from collections.abc import Mapping
from functools import partial
from tempfile import TemporaryFile
from typing import Any

from tasks.bounded.child import Call
from tasks.bounded.limits import InputFailed
from tasks.steps.command.output import Output

CHECK_S = 0.1
PIECE = 1 << 18
MOST_READS_AT_END = 8
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
    outputs = _outputs(process, call)
    was_asked = _follow(process, outputs, call)
    for pipe, output in outputs.items():
        # What the program left running may still write.
        for _ in range(MOST_READS_AT_END):
            if not _take(pipe, output):
                break
        output.end()
    stdout, stderr = outputs.values()
    return {
        "code": process.wait(),
        "was_asked": was_asked,
        "size": stdout.size + stderr.size,
        "last_line": stderr.last or stdout.last,
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


def _outputs(process: "subprocess.Popen[bytes]", call: Call) -> dict[int, Output]:
    outputs = {}
    for stream, level in ((process.stdout, logging.INFO), (process.stderr, logging.WARNING)):
        assert stream is not None  # noqa: S101 - a pipe
        os.set_blocking(stream.fileno(), False)
        write = partial(call.note, logging.getLevelName(level))
        outputs[stream.fileno()] = Output(write, call.arguments["secrets"])
    return outputs


def _follow(process: "subprocess.Popen[bytes]", outputs: Mapping[int, Output], call: Call) -> bool:
    """Report the output until the program has ended; return whether it was asked to end."""
    was_asked = False
    with selectors.DefaultSelector() as selector:
        for pipe in outputs:
            selector.register(pipe, selectors.EVENT_READ)
        while process.poll() is None:
            for key, _events in selector.select(CHECK_S if selector.get_map() else 0):
                if not _take(key.fd, outputs[key.fd]):
                    selector.unregister(key.fd)
            if not selector.get_map():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(CHECK_S)
            for output in outputs.values():
                output.write_if_old()
            if call.watch.is_stopped and not was_asked:
                was_asked = True
                os.killpg(0, signal.SIGTERM)
    return was_asked


def _take(pipe: int, output: Output) -> bool:
    """Read once; return False at the end of the output."""
    try:
        piece = os.read(pipe, PIECE)
    except BlockingIOError:
        return True
    output.take(piece)
    return bool(piece)
