"""Write a running operation's progress and log lines to its row, at most once a second."""

import logging
from collections import deque
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.store.operations import running
from models.store.operations.eta import estimate
from models.store.operations.running import MOST_LOG_LINES, Story
from runtime.clock import monotonic, utc_now
from runtime.db_retry import persist
from tasks.step_states import Script

WRITE_EVERY_S = 1.0


class Progress:
    """What the row of one running attempt shows: steps, phase, message, counts, log lines."""

    def __init__(self, engine: sa.Engine, operation_id: UUID, attempt: int, script: Script) -> None:
        self.engine = engine
        self.operation_id = operation_id
        self.attempt = attempt
        self.script = script
        self._values: dict[str, Any] = {}
        self._lines: deque[dict[str, Any]] = deque(maxlen=MOST_LOG_LINES)
        self._has_new_lines = False
        self._is_estimated = False
        self._written_at = monotonic()

    def report(
        self,
        done: int | None = None,
        total: int | None = None,
        message: str | None = None,
        phase: str | None = None,
    ) -> None:
        """Report what is not None; raises LeaseLost if the row is no longer ours."""
        # A step may count in another number type, which no store knows.
        counts = {"processed": done, "total": total}
        self._values |= {key: int(one) for key, one in counts.items() if one is not None}
        texts = {"message": message, "phase": phase}
        self._values |= {key: str(one) for key, one in texts.items() if one is not None}
        if done is not None and total:
            share = float(done) / float(total)
            self._values["progress"] = self.script.progress(min(1.0, max(0.0, share)))
        self._write_if_old()

    def log(self, line: dict[str, Any]) -> None:
        """Keep a log line; it is written with the next progress, step or end."""
        self._lines.append(line)
        self._has_new_lines = True

    def begin_step(self, index: int) -> None:
        """Write that a step starts and how the previous one ended; raises LeaseLost."""
        self._values |= self.script.begin(index)
        self.write()

    def write(self) -> None:
        """Write what has changed, waiting for the database; raises LeaseLost."""
        story = self.unwritten()
        persist(
            self.engine,
            lambda connection: running.write(connection, self.operation_id, self.attempt, story),
        )
        self._has_new_lines = False
        self._written_at = monotonic()

    def unwritten(self) -> Story:
        """Return the steps, the unwritten values and the new log lines."""
        values, self._values = self._values, {}
        lines = list(self._lines) if self._has_new_lines else None
        return Story({**values, "steps": self.script.stories}, lines)

    def _write_if_old(self) -> None:
        if monotonic() - self._written_at < WRITE_EVERY_S:
            return
        if not self._is_estimated:
            self._values |= self._estimated()
        self.write()

    def _estimated(self) -> dict[str, Any]:
        """Return when the operation should be done; estimated once, after its first second."""
        self._is_estimated = True
        return {"eta_at": persist(self.engine, lambda c: estimate(c, self.operation_id))}


class LineHandler(logging.Handler):
    """Passes the log records of one operation's steps to its progress."""

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
