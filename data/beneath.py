"""Opening of a file beneath a folder, whatever links and changes there are on the way."""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from data.failures import SourceFailed

MOST_LINKS = 40
# A FIFO would wait for its writer; a terminal would become this process's own.
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_FOLDER = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY


@contextmanager
def opened_beneath(root: Path, name: str) -> Iterator[BinaryIO]:
    """Yield the open regular file `name` beneath `root`, whose own path may have links.

    Each part of the name is opened in the folder opened before it, so nothing can be swapped in
    between. Links are followed if they stay beneath the root. Raises SourceFailed for all else: a
    path that leads outside, a FIFO, a device, and a file with a second hard link.
    """
    with ExitStack() as stack:
        try:
            file = _Walk(stack, root, name).file()
        except OSError as error:
            text = f"{name}: {error.strerror} in the data root (SCHED_DATA_ROOT)"
            raise SourceFailed(text) from None
        except ValueError as error:
            raise SourceFailed(f"{name!r}: {error}", permanent=True) from None
        _check(os.fstat(file), name)
        os.set_blocking(file, True)
        yield os.fdopen(file, "rb", closefd=False)


class _Walk:
    """A walk from the root; the stack closes what it opened."""

    def __init__(self, stack: ExitStack, root: Path, name: str) -> None:
        self._stack = stack
        self._name = name
        # The folders from the root to the present one.
        self._folders = [self._kept(os.open(root, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY))]
        self._tops = [str(top).rstrip("/") + "/" for top in (root, root.resolve())]
        self._waiting = _parts(name, name)
        self._links = 0

    def file(self) -> int:
        """Return the descriptor of the file."""
        while self._waiting:
            part = self._waiting.pop(0)
            if part == "..":
                self._folders.pop()
                if not self._folders:
                    raise _outside(self._name)
            elif not self._follows(part):
                is_last = not self._waiting
                opened = os.open(part, _FLAGS if is_last else _FOLDER, dir_fd=self._folders[-1])
                self._folders.append(self._kept(opened))
                if is_last:
                    return opened
        raise SourceFailed(f"{self._name} is not a file", permanent=True)

    def _follows(self, part: str) -> bool:
        """Put the target of a link before the waiting parts; return False for all else."""
        try:
            target = os.readlink(part, dir_fd=self._folders[-1])
        except OSError:
            return False
        self._links += 1
        if self._links > MOST_LINKS:
            raise SourceFailed(f"{self._name} has too many links", permanent=True)
        for top in self._tops:
            if target.startswith(top):
                target, self._folders = target.removeprefix(top), self._folders[:1]
        self._waiting[:0] = _parts(target, self._name)
        return True

    def _kept(self, descriptor: int) -> int:
        self._stack.callback(os.close, descriptor)
        return descriptor


def _parts(path: str, name: str) -> list[str]:
    if path.startswith("/"):
        raise _outside(name)
    return [part for part in path.split("/") if part not in ("", ".")]


def _outside(name: str) -> SourceFailed:
    return SourceFailed(f"{name} lies outside the data root (SCHED_DATA_ROOT)", permanent=True)


def _check(state: os.stat_result, name: str) -> None:
    if not stat.S_ISREG(state.st_mode):
        raise SourceFailed(f"{name} is not a file", permanent=True)
    if state.st_nlink > 1:
        # A hard link gives a file of another folder a name beneath the root.
        text = f"{name} has {state.st_nlink} hard links; write a file of its own"
        raise SourceFailed(text, permanent=True)
