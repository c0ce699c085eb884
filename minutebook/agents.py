"""The agent of a worker, which has Minutebook's modules and database: a child or a sidecar.

A worker's process has the user's `tasks`, `models` and `cli`, and the server's have the same names.
It therefore imports nothing of ours but this light package.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from pathlib import Path
from time import monotonic
from typing import Any

from minutebook.agent_place import Program
from minutebook.channel import AgentAway, Channel, Channels

logger = logging.getLogger("minutebook.follow")

PARENT = "MINUTEBOOK_PARENT_PID"
WATCH_S = 0.5
LONGEST_PAUSE_S = 30.0
# An agent that ran this long is restarted at once.
HEALTHY_S = 60.0
STOP_S = 10.0
START_S = 15.0
CHECK_S = 0.05
# How often a worker repeats what it follows, so that a restarted sidecar knows it.
REPEAT_S = 2.0
ANSWER_S = 10.0


class Agent:
    """The agent of one worker: its socket, and what tasks need to know of the worker."""

    def __init__(self, path: str, wait_s: float) -> None:
        self.path = path
        self.channels = Channels(path)
        # How long a task waits for an agent or database that is unavailable.
        self.wait_s = wait_s
        # Celery's time limit for all tasks of the worker.
        self.time_limit_s: float | None = None
        # Any other process is a child of its pool.
        self.worker_pid = os.getpid()
        self._stop = threading.Event()

    def start(self) -> None:
        """Return when the agent knows the worker, at most after START_S seconds.

        A worker that takes messages is then recorded as following. If the agent does not answer in
        time, each task waits for it.
        """
        raise NotImplementedError

    def stop(self) -> None:
        """Leave the agent; called after the worker's pool has ended."""
        raise NotImplementedError


class AgentProcess(Agent):
    """An agent that is the worker's child, restarted when it dies."""

    def __init__(
        self,
        program: Program,
        home: str | os.PathLike[str] | None,
        worker: dict[str, Any],
        wait_s: float,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"minutebook-{os.getuid()}-agent-"))
        # While the lock is held, no start of Minutebook removes the folder: runtime/scratch.py.
        self._held = os.open(self.folder, os.O_RDONLY)
        fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        super().__init__(str(self.folder / "agent.sock"), wait_s)
        at_home = [] if home is None else ["--home", str(Path(home).absolute())]
        self._program = program
        self._command = [*program.command, *at_home, "agent", "--socket", self.path]
        self._first_line = json.dumps(worker).encode() + b"\n"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the agent and a thread that restarts it when it dies."""
        self._start()
        give_up_at = monotonic() + START_S
        while not answers(self.path) and monotonic() < give_up_at and self._is_alive():
            self._stop.wait(CHECK_S)
        threading.Thread(target=self._watch, name="minutebook agent", daemon=True).start()

    def stop(self) -> None:
        """Stop the agent."""
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
        os.close(self._held)

    def _is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _start(self) -> None:
        self._process = None
        try:
            process = subprocess.Popen(  # noqa: S603 - the user names the program
                self._command,
                env={**self._program.environment(os.environ), PARENT: str(self.worker_pid)},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                # Ctrl-C reaches the worker, whose tasks still need it.
                start_new_session=True,
            )
            self._process = process
            if process.stdin is not None:
                process.stdin.write(self._first_line)
                process.stdin.close()
        except OSError as error:
            logger.error("the agent %s did not start: %s", self._command[0], error)

    def _watch(self) -> None:
        pause_s = 0.0
        started = monotonic()
        while not self._stop.wait(WATCH_S):
            if self._is_alive():
                continue
            is_sudden = monotonic() - started < HEALTHY_S
            pause_s = min(LONGEST_PAUSE_S, max(1.0, pause_s * 2)) if is_sudden else 0.0
            if self._process is not None:
                code = self._process.returncode
                logger.error("Minutebook's agent ended with %s; starting it again", code)
            if self._stop.wait(pause_s):
                return
            started = monotonic()
            self._start()


class AgentBeside(Agent):
    """An agent that others started, at a socket; this process only tells it of its worker."""

    # How long it may take to answer.
    answer_s = ANSWER_S

    def __init__(self, path: str, worker: dict[str, Any], wait_s: float) -> None:
        super().__init__(path, wait_s)
        self._hello = {"verb": "worker", **worker}
        self._channel = Channel(path)
        self._away = ""
        # Whether it took the connection, and did not answer in time.
        self._is_silent = False

    def start(self) -> None:
        """Tell the agent of the worker, and start a thread that goes on telling it."""
        give_up_at = monotonic() + START_S
        while not self._is_known() and monotonic() < give_up_at:
            self._stop.wait(CHECK_S)
        threading.Thread(target=self._repeat, name="minutebook agent", daemon=True).start()

    def stop(self) -> None:
        """Close the connection: the agent records that the worker has stopped."""
        self._stop.set()
        self._channel.close()

    def _repeat(self) -> None:
        told_at = monotonic()
        while not self._stop.wait(WATCH_S):
            if monotonic() - told_at >= REPEAT_S or not self._channel.is_alive():
                self._is_known()
                told_at = monotonic()

    def _is_known(self) -> bool:
        try:
            answer = self._channel.ask(self._hello, self.answer_s)
            self._is_silent = False
        except AgentAway as error:
            self._is_silent = self._channel.is_open
            self._note(f"the agent at {self.path} does not answer: {error}")
            return False
        is_known = answer.get("state") == "known"
        refused = f"the agent at {self.path} refuses this worker: {answer.get('reason')}"
        self._note("" if is_known else refused)
        return is_known

    def _note(self, trouble: str) -> None:
        # Once for each change, not at each try.
        if trouble and trouble != self._away and not self._stop.is_set():
            logger.error("%s", trouble)
        self._away = trouble


class NowhereAgent(Agent):
    """No agent: the messages of Minutebook's tasks go back to their queue."""

    def __init__(self, reason: str, wait_s: float) -> None:
        # No file may have this path.
        super().__init__("", wait_s)
        self.reason = reason

    def start(self) -> None:
        """Report that there is none."""
        logger.error("%s; until then Minutebook's tasks go back to their queue", self.reason)

    def stop(self) -> None:
        """Do nothing."""


def answers(path: str) -> bool:
    """Return whether something listens at a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(path) == 0
