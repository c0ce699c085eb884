"""What a running operation reports, progress and log lines, and when its row shows it."""

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock, RLock
from typing import Any

import sqlalchemy as sa

from models.operation import AttemptKey
from models.store.operations import heartbeat
from models.store.operations.heartbeat import MOST_LOG_LINES, NO_NEWS, ProgressUpdate
from runtime.clock import monotonic, utc_now
from runtime.db_retry import persist
from tasks.step_states import Script

# In characters: the lease is renewed in the same transaction, and all lines must fit into a row.
LONGEST_LINE = 10_000
# The shortest time between two writes of what is new.
WRITTEN_EVERY_S = 0.5


class Progress:
    """What the row of one running attempt shows: steps, phase, message, counts, log lines.

    The thread of the lease writes what a step reports, at most every half second: so a step that
    reports in a loop costs little.
    """

    def __init__(self, engine: sa.Engine, key: AttemptKey, script: Script) -> None:
        self.engine = engine
        self.key = key
        self.script = script
        self._reported: dict[str, Any] = {}
        # Whether the end is to be estimated, now that more is known of the run.
        self.wants_estimate = True
        # What is new: values of the row's columns, and whether there are lines.
        self._values: dict[str, Any] = {}
        self._has_lines = False
        self._lines: deque[dict[str, Any]] = deque(maxlen=MOST_LOG_LINES)
        self._taken_at = monotonic()
        # Held while values are put or taken, and while they are written. The second one is taken
        # again by a step that was interrupted while it wrote.
        self._lock, self._writing = Lock(), RLock()

    def report(
        self,
        done: int | None = None,
        total: int | None = None,
        message: str | None = None,
        phase: str | None = None,
        *,
        blocking: bool | None = None,
    ) -> None:
        """Report what is not None.

        Nothing is destroyed unannounced: what blocks is written before the step goes on, which
        raises LeaseLost if the row is no longer ours.
        """
        # A step may count in another number type, which no store knows.
        counts = {"processed": done, "total": total}
        values: dict[str, Any] = {k: int(one) for k, one in counts.items() if one is not None}
        texts = {"message": message, "phase": phase}
        values |= {key: str(one) for key, one in texts.items() if one is not None}
        if done is not None and total:
            share = float(done) / float(total)
            values["progress"] = self.script.progress(min(1.0, max(0.0, share)))
        if blocking is not None:
            values["is_blocking"] = bool(blocking)
        changed = {k: one for k, one in values.items() if self._reported.get(k) != one}
        self._reported |= changed
        self._put(changed)
        if changed.get("is_blocking"):
            self.write()

    def announce(self, run_type: str, rewrites: Iterable[str]) -> None:
        """Report what kind of run it is: those that rewrote the same say when it ends."""
        self._put({"run_type": run_type, "rewrites": ", ".join(sorted(rewrites))})
        self.write()
        self.wants_estimate = True

    def begin_step(self, index: int) -> None:
        """Write that a step starts and how the previous one ended; raises LeaseLost."""
        self._reported = self.script.begin(index)
        self._put(self._reported)
        self.write()

    def append(self, line: dict[str, Any]) -> None:
        """Keep a log line."""
        self._lines.append(line)
        self._has_lines = True

    def write(self) -> None:
        """Write what has changed, waiting for the database; raises LeaseLost."""
        with self.being_written(waits=True) as story:
            persist(self.engine, lambda opened: heartbeat.beat(opened, self.key, story))

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
            story = self._take()
            try:
                yield story
            except BaseException:
                self._put(story.values, is_older=True)
                self._has_lines = self._has_lines or story.lines is not None
                raise
        finally:
            self._writing.release()

    def last(self) -> ProgressUpdate:
        """Return the steps, the unwritten values and all log lines, to be written at the end."""
        with self._writing:
            values = {**self._take().values, "steps": self.script.stories}
            return ProgressUpdate(values, self.lines())

    def lines(self) -> list[dict[str, Any]] | None:
        """Return the last log lines, None if there are none."""
        # Copied at once: the other thread may append meanwhile.
        return list(self._lines.copy()) or None

    def due_at(self) -> float | None:
        """Return when to write what is new, by the monotonic clock; None if nothing is."""
        is_new = self._values or self._has_lines
        return self._taken_at + WRITTEN_EVERY_S if is_new else None

    def _put(self, values: Mapping[str, Any], *, is_older: bool = False) -> None:
        with self._lock:
            self._values = {**values, **self._values} if is_older else {**self._values, **values}

    def _take(self) -> ProgressUpdate:
        with self._lock:
            values, self._values = self._values, {}
            has_lines, self._has_lines = self._has_lines, False
            self._taken_at = monotonic()
        return ProgressUpdate(values, self.lines() if has_lines else None)


class LineHandler(logging.Handler):
    """Keeps the log records of one operation's steps."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(logging.INFO)
        self.progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the record as a line: at, level, message.

        As with any handler of Python's, a record that cannot be written does not fail its step.
        """
        try:
            message = record.getMessage()
        except Exception:  # a user's __str__, or a format without its values
            self.handleError(record)
            return
        if len(message) > LONGEST_LINE:
            message = f"{message[:LONGEST_LINE]}…"
        at = utc_now().isoformat(timespec="milliseconds")
        self.progress.append({"at": at, "level": record.levelname, "message": message})
