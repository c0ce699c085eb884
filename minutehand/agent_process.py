"""Start and watch the agent beside a worker, which has Minutehand's modules and database.

A worker's process has the user's `tasks`, `models` and `cli`, and ours have the same names. It
therefore imports nothing of ours but this light package.
"""

import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any

logger = logging.getLogger("minutehand.follow")

PARENT = "MINUTEHAND_PARENT_PID"
WATCH_S = 0.5
LONGEST_PAUSE_S = 30.0
# An agent that ran this long is restarted at once.
HEALTHY_S = 60.0
STOP_S = 10.0
START_S = 15.0
CHECK_S = 0.05


class AgentProcess:
    """The agent of one worker, restarted when it dies."""

    def __init__(
        self, home: str | os.PathLike[str] | None, worker: dict[str, Any], wait_s: float
    ) -> None:
        # How long a task waits for an agent or database that is away.
        self.wait_s = wait_s
        # Celery's time limit for all tasks of the worker.
        self.time_limit_s: float | None = None
        self.folder = Path(tempfile.mkdtemp(prefix="minutehand-"))
        self.path = str(self.folder / "agent.sock")
        # Any other process is a child of its pool.
        self.worker_pid = os.getpid()
        at_home = [] if home is None else ["--home", str(Path(home).absolute())]
        # -P keeps the working directory out of the agent's module path.
        ours = [sys.executable, "-P", "-m", "minutehand"]
        self._command: Sequence[str] = [*ours, *at_home, "agent", "--socket", self.path]
        self._first_line = json.dumps(worker).encode() + b"\n"
        self._stop = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the agent and a thread that restarts it when it dies.

        Returns when it answers, so that a worker that takes messages is recorded as following. If
        it does not answer in time, each task waits for it.
        """
        self._start()
        give_up_at = monotonic() + START_S
        while not self._answers() and monotonic() < give_up_at:
            self._stop.wait(CHECK_S)
        threading.Thread(target=self._watch, name="minutehand agent", daemon=True).start()

    def stop(self) -> None:
        """Stop the agent; called after the worker's pool has ended."""
        self._stop.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            return probe.connect_ex(self.path) == 0

    def _start(self) -> None:
        process = subprocess.Popen(  # noqa: S603 - the command is ours
            self._command,
            env={**os.environ, PARENT: str(self.worker_pid)},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            # Ctrl-C reaches the worker, whose tasks still need it.
            start_new_session=True,
        )
        self._process = process
        if process.stdin is not None:
            try:
                process.stdin.write(self._first_line)
                process.stdin.close()
            except OSError as error:
                logger.warning("the agent did not start: %s", error)

    def _watch(self) -> None:
        pause_s = 0.0
        started = monotonic()
        while not self._stop.wait(WATCH_S):
            if self._process is not None and self._process.poll() is None:
                continue
            code = None if self._process is None else self._process.returncode
            is_sudden = monotonic() - started < HEALTHY_S
            pause_s = min(LONGEST_PAUSE_S, max(1.0, pause_s * 2)) if is_sudden else 0.0
            logger.error("Minutehand's agent ended with %s; starting it again", code)
            if self._stop.wait(pause_s):
                return
            started = monotonic()
            self._start()
