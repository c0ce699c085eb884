"""What a running attempt reports and its row does not show yet: values and log lines."""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock, RLock
from typing import Any

from minutebook.lease import NEWS_EVERY_S, NEWS_SOON_S
from models.store.operations.heartbeat import MOST_LOG_LINES, NO_NEWS, ProgressUpdate
from runtime.clock import monotonic

Lines = list[dict[str, Any]]
# Operations that are over earlier need no estimate of their end.
ESTIMATED_AFTER_S = 1.0


class News:
    """Values and log lines to write: by the steps at once, or a little later by the lease.

    Urgent values are written soon, others and lines within a second of the last write. A write
    takes all of them.
    """

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._is_urgent = False
        self._lines: deque[dict[str, Any]] = deque(maxlen=MOST_LOG_LINES)
        self._has_lines = False
        self._taken_at = monotonic()
        self._estimated_at: float | None = self._taken_at + ESTIMATED_AFTER_S
        # Held while values are put or taken, and while they are written. The second one is taken
        # again by a step that was interrupted while it wrote.
        self._lock, self._writing = Lock(), RLock()

    def put(self, values: Mapping[str, Any], *, is_urgent: bool = False) -> None:
        """Keep values of the row's columns to be written."""
        with self._lock:
            self._values = {**self._values, **values}
            self._is_urgent = self._is_urgent or is_urgent

    def append(self, line: dict[str, Any]) -> None:
        """Keep a log line."""
        self._lines.append(line)
        self._has_lines = True

    def estimate_again(self) -> None:
        """Let the end be estimated anew: more is known of the run, or it was not written."""
        self._estimated_at = max(monotonic(), self._estimated_at or 0.0)

    def takes_estimate(self) -> bool:
        """Return whether the end is to be estimated now; true once."""
        if self._estimated_at is None or monotonic() < self._estimated_at:
            return False
        self._estimated_at = None
        return True

    def due_at(self) -> float | None:
        """Return when to write what is new, by the monotonic clock; None if nothing is."""
        due = [] if self._estimated_at is None else [self._estimated_at]
        if self._values or self._has_lines:
            due.append(self._taken_at + (NEWS_SOON_S if self._is_urgent else NEWS_EVERY_S))
        return min(due, default=None)

    def lines(self) -> Lines | None:
        """Return the last log lines, None if there are none."""
        # Copied at once: the other thread may append meanwhile.
        return list(self._lines.copy()) or None

    @contextmanager
    def being_written(self, *, waits: bool) -> Iterator[ProgressUpdate]:
        """Yield what is new; it is written when the block ends, and stays new if that fails.

        What is older never overwrites what is newer: while the other thread writes, wait for it, or
        leave it to the next time.
        """
        if not self._writing.acquire(blocking=waits):
            yield NO_NEWS
            return
        try:
            values, has_lines = self._take()
            try:
                yield ProgressUpdate(values, self.lines() if has_lines else None)
            except BaseException:
                self._put_back(values, has_lines=has_lines)
                raise
        finally:
            self._writing.release()

    def last(self, values: Mapping[str, Any]) -> ProgressUpdate:
        """Return what is to be written at the end: what is new, `values`, and all log lines."""
        with self._writing:
            return ProgressUpdate({**self._take()[0], **values}, self.lines())

    def _take(self) -> tuple[dict[str, Any], bool]:
        with self._lock:
            values, self._values, self._is_urgent = self._values, {}, False
            has_lines, self._has_lines = self._has_lines, False
            self._taken_at = monotonic()
        return values, has_lines

    def _put_back(self, values: dict[str, Any], *, has_lines: bool) -> None:
        with self._lock:
            self._values = {**values, **self._values}
            self._has_lines = self._has_lines or has_lines
