"""Where the workers of one account and installation find the agent that they share."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from minutebook.agent_place import VARIABLE, NoAgent, Program

RUNTIME_FOLDER = "XDG_RUNTIME_DIR"
DEFAULT_HOME = ".minutebook"
# What leads an agent to its installation: settings, and what PostgreSQL's client reads itself.
OF_INSTALLATION = ("SCHED_", "PG")
NOT_OF_IT = (VARIABLE, "SCHED_HOME")
# What worker and agent say to each other stands in these files; another release's differ.
PROTOCOL = ("agents.py", "celery_worker.py", "channel.py", "discarded.py", "followed.py")


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
