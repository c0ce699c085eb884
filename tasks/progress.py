"""Report a running operation's progress and log lines: to the row, at most once a second."""

import logging
from collections import deque
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.operation import StepState
from models.store import running
from models.store.running import MOST_LOG_LINES
from runtime.clock import monotonic, utc_now
from tasks.persist import persist

WRITE_EVERY_S = 1.0


class Progress:
    """What the row of one running attempt shows: steps, phase, message, counts, log lines."""

    def __init__(
        self, engine: sa.Engine, operation_id: UUID, attempt: int, steps: list[dict[str, Any]]
    ) -> None:
        self.engine = engine
        self.operation_id = operation_id
        self.attempt = attempt
        self.steps = steps
        self._values: dict[str, Any] = {}
        self._lines: deque[dict[str, Any]] = deque(maxlen=MOST_LOG_LINES)
        self._has_new_lines = False
        self._written_at = monotonic()

    def report(
        self,
        done: int | None = None,
        total: int | None = None,
        message: str | None = None,
        phase: str | None = None,
    ) -> None:
        """Take what is not None; raises LeaseLost when the row is no longer ours."""
        given = {"processed": done, "total": total, "message": message, "phase": phase}
        self._values.update((key, value) for key, value in given.items() if value is not None)
        if done is not None and total:
            self._values["progress"] = self._overall(min(1.0, max(0.0, done / total)))
        self._write_if_old()

    def log(self, line: dict[str, Any]) -> None:
        """Keep a log line; it is written with the next progress, step or end."""
        self._lines.append(line)
        self._has_new_lines = True

    def begin_step(self, index: int) -> None:
        """Note that a step starts; counts of the one before are no longer true."""
        self._step(index, state=StepState.RUNNING, started_at=utc_now().isoformat(), error=None)
        self._values |= {"phase": self.steps[index]["name"], "message": None}
        self._values |= {"processed": None, "total": None, "progress": self._overall(0.0)}
        self.write()

    def end_step(self, index: int, state: StepState, **story: Any) -> None:
        """Note how a step ended: `message`, `details` or `error`."""
        self._step(index, state=state, finished_at=utc_now().isoformat(), **story)
        self._values["progress"] = self._overall(0.0)
        self.write()

    def write(self) -> None:
        """Write what has changed, also after the database was away; raises LeaseLost."""
        values, self._values = self._values, {}
        lines = list(self._lines) if self._has_new_lines else None
        values["steps"] = self.steps
        persist(
            self.engine,
            lambda connection: running.write(
                connection, self.operation_id, self.attempt, values, lines
            ),
        )
        self._has_new_lines = False
        self._written_at = monotonic()

    def _write_if_old(self) -> None:
        if monotonic() - self._written_at >= WRITE_EVERY_S:
            self.write()

    def _step(self, index: int, **story: Any) -> None:
        self.steps[index] = {**self.steps[index], **story}

    def _overall(self, of_step: float) -> float:
        """Return the operation's progress when its running step is at `of_step` (0…1)."""
        ended = {StepState.SUCCESS, StepState.PARTIAL}
        done = sum(step["state"] in ended for step in self.steps)
        return min(1.0, (done + of_step) / len(self.steps)) if self.steps else 0.0


class LineHandler(logging.Handler):
    """Hands the log records of one operation's steps to its progress."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(logging.INFO)
        self.progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the record as a line: at, level, message."""
        self.progress.log(
            {
                "at": utc_now().isoformat(timespec="milliseconds"),
                "level": record.levelname,
                "message": record.getMessage(),
            }
        )
