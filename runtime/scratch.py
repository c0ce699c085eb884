"""Folders in the system's temporary folder that go when their process is gone, however it ended.

Each is locked by the process that uses it. The kernel frees the lock when that process and all
that it forked are gone; then the next start of anything of ours, of this account, removes it.
"""

import atexit
import fcntl
import os
import shutil
import socket
import stat
from contextlib import closing, suppress
from multiprocessing import process
from pathlib import Path
from tempfile import mkdtemp

from runtime.config import temporary_folder
from runtime.folders import make_private

# The locks of this process: closing one frees it.
_held: list[int] = []


def prefix() -> str:
    """Return what the names of this account's folders begin with."""
    return f"minutebook-{os.getuid()}-"


def hold(folder: Path) -> None:
    """Make a folder and keep it while this process lives, unless another process keeps it."""
    while True:
        make_private(folder)
        with suppress(FileNotFoundError):
            opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            with suppress(BlockingIOError):
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A sweep may have removed it before it was locked.
            if folder.exists() and folder.stat().st_ino == os.fstat(opened).st_ino:
                _held.append(opened)
                return
            os.close(opened)


def use_scratch(name: str) -> Path:
    """Give this process and its pool a folder for what they share, removed at the end."""
    folder = Path(mkdtemp(prefix=f"{prefix()}{name}-", dir=temporary_folder()))
    hold(folder)
    # Celery's pool makes a folder here for its shared memory, and leaves it when it is killed.
    process.current_process()._config["tempdir"] = str(folder)  # type: ignore[attr-defined]
    owner = os.getpid()
    atexit.register(lambda: _remove(folder) if os.getpid() == owner else None)
    return folder


def sweep() -> list[Path]:
    """Remove this account's folders whose processes are gone; return them.

    Raises InvalidSetting if the system has no folder for temporary files.
    """
    found = temporary_folder().glob(f"{prefix()}*")
    return [folder for folder in found if _is_left(folder)]


def _is_left(folder: Path) -> bool:
    try:
        if not _is_ours(folder):
            return False
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if any(_answers(one) for one in folder.iterdir()):
            return False
        _remove(folder)
    except OSError:
        return False
    finally:
        os.close(opened)
    return True


def _is_ours(folder: Path) -> bool:
    state = folder.lstat()
    return stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid()


def _answers(path: Path) -> bool:
    """Return whether a server listens there: it may have outlived the process that started it."""
    if not stat.S_ISSOCK(path.lstat().st_mode):
        return False
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
        probe.settimeout(1)
        return probe.connect_ex(str(path)) == 0


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
