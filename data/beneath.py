"""Opening of a file beneath a folder, whatever links and changes there are on the way."""

import fcntl
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from data.failures import SourceFailed

# A FIFO would wait for its writer; a terminal would become this process's own.
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


@contextmanager
def opened_beneath(root: Path, name: str) -> Iterator[BinaryIO]:
    """Yield the open regular file `name` beneath `root`, whose own path may have links.

    The file that is open is asked where it lies, so nothing can be swapped in before. Raises
    SourceFailed for all else: a path that leads outside, a FIFO, a device, and a file with a second
    hard link.
    """
    with ExitStack() as stack:
        try:
            file = os.open(root / name, _FLAGS)
            stack.callback(os.close, file)
            path = _path_of(file)
        except OSError as error:
            text = f"{name}: {error.strerror} in the data root (SCHED_DATA_ROOT)"
            raise SourceFailed(text) from None
        except ValueError as error:
            raise SourceFailed(f"{name!r}: {error}", permanent=True) from None
        if not path.is_relative_to(root.resolve()):
            text = f"{name} lies outside the data root (SCHED_DATA_ROOT)"
            raise SourceFailed(text, permanent=True)
        _check(os.fstat(file), name)
        os.set_blocking(file, True)
        yield os.fdopen(file, "rb", closefd=False)


def _path_of(file: int) -> Path:
    """Return the path of an open file, without links."""
    if sys.platform == "darwin":
        return Path(os.fsdecode(fcntl.fcntl(file, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0")))
    return Path(os.readlink(f"/proc/self/fd/{file}"))


def _check(state: os.stat_result, name: str) -> None:
    if not stat.S_ISREG(state.st_mode):
        raise SourceFailed(f"{name} is not a file", permanent=True)
    if state.st_nlink > 1:
        # A hard link gives a file of another folder a name beneath the root.
        text = f"{name} has {state.st_nlink} hard links; write a file of its own"
        raise SourceFailed(text, permanent=True)
