"""The agent that the workers of one account and installation share, and where they find it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from minutebook.agent_place import VARIABLE, NoAgent, Program, find_agent
from minutebook.agents import (
    CHECK_S,
    LONGEST_PAUSE_S,
    PARENT,
    START_S,
    Agent,
    AgentBeside,
    AgentProcess,
    NowhereAgent,
    answers,
)

logger = logging.getLogger("minutebook.follow")

RUNTIME_FOLDER = "XDG_RUNTIME_DIR"
DEFAULT_HOME = ".minutebook"
# What leads an agent to its installation: settings, and what PostgreSQL's client reads itself.
OF_INSTALLATION = ("SCHED_", "PG")
NOT_OF_IT = (VARIABLE, "SCHED_HOME")
# What worker and agent say to each other stands in these files; another release's differ.
PROTOCOL = ("agents.py", "celery_worker.py", "channel.py", "discarded.py", "followed.py")


class SharedAgent(AgentBeside):
    """The agent of all workers of this account and installation; the first one starts it.

    One that stands still is left to those that it serves, and another one takes its place.
    """

    answer_s = 5.0

    def __init__(
        self,
        program: Program,
        home: str | os.PathLike[str] | None,
        worker: dict[str, Any],
        wait_s: float,
    ) -> None:
        self._folder = shared_folder(os.environ)
        # While it is held, no start of Minutebook removes the folder: runtime/scratch.py.
        self._held = held_folder(self._folder)
        name = shared_name(program, home, os.environ)
        super().__init__(str(self._folder / f"{name}.sock"), worker, wait_s)
        self._program = program
        self._home = home_of(home, os.environ)
        self._process: subprocess.Popen[bytes] | None = None
        self._pause_s, self._start_at = 0.0, 0.0

    def stop(self) -> None:
        """Leave the agent, which ends by itself once no worker uses it."""
        super().stop()
        os.close(self._held)

    def _is_known(self) -> bool:
        if not self._stop.is_set() and not self._channel.is_alive() and not answers(self.path):
            self._start_one()
        asked = _socket_of(self.path)
        is_known = super()._is_known()
        if self._is_silent and not self._stop.is_set():
            self._channel.close()
            self._start_one(instead_of=asked)
        # One that serves is started again at once.
        self._pause_s = 0.0 if is_known else self._pause_s
        return is_known

    def _start_one(self, instead_of: int | None = None) -> None:
        """Start an agent, unless another worker is about to, or the last one has just failed.

        `instead_of` is the socket of one that stands still.
        """
        self._note_end()
        is_started = self._process is not None and instead_of is None
        if is_started or monotonic() < self._start_at:
            return
        lock = os.open(f"{self.path}.lock", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if instead_of is not None and _socket_of(self.path) == instead_of:
                os.unlink(self.path)
            if not answers(self.path):
                self._start()
        except BlockingIOError:
            self._stop.wait(CHECK_S)
        finally:
            os.close(lock)

    def _start(self) -> None:
        self._pause_s = min(LONGEST_PAUSE_S, max(1.0, self._pause_s * 2))
        self._start_at = monotonic() + self._pause_s
        command = [*self._program.command, "--home", self._home, "agent"]
        environment = self._program.environment(os.environ)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the user names the program
                [*command, "--socket", self.path, "--shared"],
                env={**environment, PARENT: str(self.worker_pid)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # Ctrl-C reaches the worker, whose tasks still need it.
                start_new_session=True,
            )
        except OSError as error:
            logger.error("the agent %s did not start: %s", command[0], error)
            return
        give_up_at = monotonic() + START_S
        while not answers(self.path) and monotonic() < give_up_at and self._process.poll() is None:
            self._stop.wait(CHECK_S)

    def _note_end(self) -> None:
        if self._process is None or self._process.poll() is None:
            return
        code, self._process = self._process.returncode, None
        if code:
            logger.error("Minutebook's agent ended with %s; starting it again", code)


def agent_of(
    agent: str | os.PathLike[str] | None,
    home: str | os.PathLike[str] | None,
    worker: dict[str, Any],
    wait_s: float,
) -> Agent:
    """Return the agent of a worker, which the dictionary `worker` describes, not yet started."""
    try:
        place = find_agent(agent, os.environ)
        if not isinstance(place, Program):
            return AgentBeside(place.path, worker, wait_s)
        return (AgentProcess if place.is_own else SharedAgent)(place, home, worker, wait_s)
    except NoAgent as error:
        return NowhereAgent(str(error), wait_s)


def shared_folder(environ: Mapping[str, str]) -> Path:
    """Return this account's folder of sockets, made if necessary; raises NoAgent."""
    at_run_time = environ.get(RUNTIME_FOLDER, "")
    if os.path.isabs(at_run_time) and _is_private(Path(at_run_time)):
        folder = Path(at_run_time) / "minutebook"
    else:
        folder = Path(tempfile.gettempdir()) / f"minutebook-{os.getuid()}-agents"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise NoAgent(f"no agent: {folder} cannot be made: {error.strerror}") from None
    if not _is_private(folder):
        raise NoAgent(
            f"no agent: other accounts may use {folder}; remove it, or set {VARIABLE}=own"
        )
    return folder


def held_folder(folder: Path) -> int:
    """Return the descriptor of a folder that is kept as long as it is open."""
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(opened, fcntl.LOCK_SH)
        # It may have been removed before it was locked.
        if folder.exists() and folder.stat().st_ino == os.fstat(opened).st_ino:
            return opened
        os.close(opened)


def home_of(home: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> str:
    """Return the absolute path of the installation's home folder."""
    return str(Path(home or environ.get("SCHED_HOME") or DEFAULT_HOME).absolute())


def shared_name(
    program: Program, home: str | os.PathLike[str] | None, environ: Mapping[str, str]
) -> str:
    """Return a name that differs for other installations, settings, programs and releases."""
    settings = {
        name: value
        for name, value in environ.items()
        if name.startswith(OF_INSTALLATION) and name not in NOT_OF_IT
    }
    url = settings.get("SCHED_DATABASE_URL", "")
    its = {
        "home": home_of(home, environ),
        "settings": settings,
        # A file of SQLite may be named relative to the working directory.
        "folder": os.getcwd() if url.startswith("sqlite") else "",
        "program": program.command,
        "release": [_release_of(program), _protocol()],
    }
    text = json.dumps(its, sort_keys=True).encode()
    # The name is no secret, and settings are: it must be slow to guess them by it.
    return hashlib.scrypt(text, salt=b"minutebook", n=2**13, r=8, p=1, dklen=10).hex()


def _release_of(program: Program) -> list[int]:
    """Return what an upgrade of the program changes."""
    here = Path(__file__).resolve().parent.parent / "tasks" / "agent" / "__init__.py"
    found = shutil.which(program.command[0]) if program.is_foreign else str(here)
    if found is None:
        return []
    its = Path(found).stat()
    return [its.st_mtime_ns, its.st_size]


def _protocol() -> str:
    folder = Path(__file__).resolve().parent
    texts = b"".join(one.read_bytes() for name in PROTOCOL if (one := folder / name).exists())
    return hashlib.sha256(texts).hexdigest()


def _is_private(folder: Path) -> bool:
    try:
        its = folder.lstat()
    except OSError:
        return False
    is_ours = stat.S_ISDIR(its.st_mode) and its.st_uid == os.getuid()
    return is_ours and not its.st_mode & 0o077


def _socket_of(path: str) -> int | None:
    """Return the number of a socket's file; None if there is none."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return None
