"""Report a running operation's progress and log lines, which its row shows soon after."""

import logging
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from minutebook.lease import NEWS_SOON_S
from models.store.operations import heartbeat
from models.store.operations.heartbeat import ProgressUpdate
from models.store.operations.take import Claim
from runtime.clock import monotonic, utc_now
from runtime.db_retry import persist
from tasks.news import News
from tasks.step_states import Script

# In characters: the lease is renewed in the same transaction, and all lines must fit into a row.
LONGEST_LINE = 10_000
# What somebody who looks waits for; the rest may be up to a second old.
URGENT = frozenset({"phase", "message", "is_blocking"})


class Progress:
    """What the row of one running attempt shows: steps, phase, message, counts.

    A step's report is written at once if the last write lies far enough back, else by the thread of
    the lease; so one that reports in a loop costs a few writes a second.
    """

    def __init__(self, engine: sa.Engine, script: Script, claim: Claim, news: News) -> None:
        self.engine = engine
        self.key = claim.key
        self.script = script
        self.news = news
        self._reported: dict[str, Any] = {}
        self._blocked_at = 0.0

    def report(
        self,
        done: int | None = None,
        total: int | None = None,
        message: str | None = None,
        phase: str | None = None,
        *,
        blocking: bool | None = None,
    ) -> None:
        """Report what is not None; raises LeaseLost if the row is no longer ours."""
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
        self._put(values)

    def announce(self, run_type: str, rewrites: Iterable[str]) -> None:
        """Report what kind of run it is: those that rewrote the same say when it ends."""
        self._put({"run_type": run_type, "rewrites": ", ".join(sorted(rewrites))})
        self.write()
        self.news.estimate_again()

    def begin_step(self, index: int) -> None:
        """Write that a step starts and how the previous one ended; raises LeaseLost."""
        self._reported, self._blocked_at = self.script.begin(index), 0.0
        self.news.put(self._reported)
        self.write()

    def write(self) -> None:
        """Write what has changed, waiting for the database; raises LeaseLost."""
        with self.news.being_written(waits=True) as story:
            persist(
                self.engine,
                lambda opened: heartbeat.beat(opened, self.key, story),
            )

    def last(self) -> ProgressUpdate:
        """Return the steps, the unwritten values and all log lines, to be written at the end."""
        return self.news.last({"steps": self.script.stories})

    def _put(self, values: dict[str, Any]) -> None:
        changed = {k: one for k, one in values.items() if self._reported.get(k) != one}
        self._reported |= changed
        self.news.put(changed, is_urgent=not URGENT.isdisjoint(changed))
        due_at, now = self.news.due_at(), monotonic()
        if self._begins_to_block(changed, now) or (due_at is not None and now >= due_at):
            self.write()

    def _begins_to_block(self, changed: dict[str, Any], now: float) -> bool:
        """Return whether to write before the step goes on: nothing is destroyed unannounced.

        A step that raises its flag again and again is written as often as any other news.
        """
        if not changed.get("is_blocking") or now < self._blocked_at + NEWS_SOON_S:
            return False
        self._blocked_at = now
        return True


class LineHandler(logging.Handler):
    """Keeps the log records of one operation's steps."""

    def __init__(self, news: News) -> None:
        super().__init__(logging.INFO)
        self.news = news

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
        self.news.append({"at": at, "level": record.levelname, "message": message})
