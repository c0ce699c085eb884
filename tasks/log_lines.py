"""The last log lines of a running operation, which two threads write to its row."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from models.store.operations.running import MOST_LOG_LINES

Lines = list[dict[str, Any]]


class LogLines:
    """The lines that the steps logged: written with their progress, and by the lease meanwhile."""

    def __init__(self) -> None:
        self._lines: deque[dict[str, Any]] = deque(maxlen=MOST_LOG_LINES)
        self._lock = Lock()
        self.has_new = False

    def append(self, line: dict[str, Any]) -> None:
        """Keep a line."""
        self._lines.append(line)
        self.has_new = True

    def all(self) -> Lines | None:
        """Return the lines, None if there are none."""
        # Copied at once: the other thread may append meanwhile.
        return list(self._lines.copy()) or None

    @contextmanager
    def being_written(self, *, waits: bool) -> Iterator[Lines | None]:
        """Yield the lines if there are new ones, else None; they are written when the block ends.

        Older lines never overwrite newer ones: while the other thread writes, wait for it, or leave
        them to the next time.
        """
        if not self._lock.acquire(blocking=waits):
            yield None
            return
        was_new, self.has_new = self.has_new, False
        try:
            yield self.all() if was_new else None
        except BaseException:
            self.has_new = self.has_new or was_new
            raise
        finally:
            self._lock.release()
