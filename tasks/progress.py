"""Write a running operation's progress and log lines to its row, at most once a second."""

import logging
from typing import Any

import sqlalchemy as sa

from minutebook.lease import NEWS_EVERY_S
from models.store.operations import running
from models.store.operations.claims import Claim
from models.store.operations.eta import estimate
from models.store.operations.running import Story
from runtime.clock import monotonic, utc_now
from runtime.db_retry import persist
from tasks.log_lines import Lines, LogLines
from tasks.step_states import Script

# In characters: the lease is renewed in the same transaction, and all lines must fit into a row.
LONGEST_LINE = 10_000


class Progress:
    """What the row of one running attempt shows: steps, phase, message, counts, log lines."""

    def __init__(self, engine: sa.Engine, script: Script, claim: Claim, lines: LogLines) -> None:
        self.engine = engine
        self.operation_id = claim.id
        self.attempt = claim.attempt
        self.script = script
        self.lines = lines
        self._values: dict[str, Any] = {}
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

    def begin_step(self, index: int) -> None:
        """Write that a step starts and how the previous one ended; raises LeaseLost."""
        self._values |= self.script.begin(index)
        self.write()

    def write(self) -> None:
        """Write what has changed, waiting for the database; raises LeaseLost."""
        with self.lines.being_written(waits=True) as lines:
            story = self._story(lines)
            persist(
                self.engine,
                lambda opened: running.beat(opened, self.operation_id, self.attempt, story),
            )
        self._written_at = monotonic()

    def last(self) -> Story:
        """Return the steps, the unwritten values and all log lines, to be written at the end."""
        return self._story(self.lines.all())

    def _story(self, lines: Lines | None) -> Story:
        values, self._values = self._values, {}
        return Story({**values, "steps": self.script.stories}, lines)

    def _write_if_old(self) -> None:
        if monotonic() - self._written_at < NEWS_EVERY_S:
            return
        if not self._is_estimated:
            self._values |= self._estimated()
        self.write()

    def _estimated(self) -> dict[str, Any]:
        """Return when the operation should be done; estimated once, after its first second."""
        self._is_estimated = True
        return {"eta_at": persist(self.engine, lambda c: estimate(c, self.operation_id))}


class LineHandler(logging.Handler):
    """Keeps the log records of one operation's steps."""

    def __init__(self, lines: LogLines) -> None:
        super().__init__(logging.INFO)
        self.lines = lines

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
        self.lines.append({"at": at, "level": record.levelname, "message": message})
