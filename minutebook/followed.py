"""An operation that a followed Celery task runs, as the task and its worker see it."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable
from contextvars import ContextVar
from datetime import datetime
from math import inf
from time import monotonic
from typing import Any, TypeVar
from uuid import UUID

from minutebook.held import ANSWERS, SILENT
from minutebook.lease import LOST, NEWS_EVERY_S, NEWS_SOON_S, TIME_LIMIT, Keeper, Limits
from minutebook.reporter import Reporter
from minutebook.server import NotDone, ServerAway

logger = logging.getLogger("minutebook.follow")

T = TypeVar("T")

BEAT_S = 5.0
# How long a task waits for its end to be recorded; then the worker's own process repeats it.
END_S = 2.0
# What somebody who looks waits for.
URGENT = frozenset({"message", "phase", "blocking"})
# The message header that names the operation.
HEADER = "minutebook"

_current: ContextVar[FollowedOperation | None] = ContextVar("minutebook_operation", default=None)


def _instant(text: str) -> datetime:
    # Before Python 3.11 it does not know Z.
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def current_operation() -> FollowedOperation | None:
    """Return the running task's operation; None outside a task that Minutebook sent."""
    return _current.get()


class FollowedOperation(Keeper):
    """A task's operation: what the task may read and report. Instants are aware UTC."""

    def __init__(
        self,
        claim: dict[str, Any],
        on_time_limit: type[BaseException],
        reporter: Reporter | None,
        killed_at: float = inf,
    ) -> None:
        super().__init__(Limits(**claim["limits"]))
        self.operation_id = UUID(claim["operation_id"])
        self.attempt: int = claim["attempt"]
        self.occurrence_at = _instant(claim["occurrence_at"])
        self.subject: str | None = claim["subject"]
        self.triggerer: str = claim["triggerer"]
        self.run_number: int = claim["run_number"]
        last = claim["last_success_at"]
        self.last_success_at = None if last is None else _instant(last)
        # What Celery's `retry` raised or returned: the next attempt's message was sent.
        self.sent_again: BaseException | None = None
        self.replaced: dict[str, Any] | None = None
        # Why a task that called `should_stop` should have ended.
        self.stopped_for: str | None = None
        self._lease: str = claim["lease"]
        self._path = f"/api/operations/{self.operation_id}"
        # None in a test.
        self._reporter = reporter
        self._on_time_limit = on_time_limit
        # When Celery's own time limit ends its process, by the machine's monotonic clock.
        self.killed_at = killed_at
        note = (self._lease, self.limits.heartbeat_s, killed_at)
        self._place = None if reporter is None else reporter.held.note(*note)
        # After its place was noted: an answer to what was asked before is not its own.
        self._renewed_at = monotonic()
        # What the task has reported, and what of that is not written yet.
        self._reported: dict[str, Any] = {}
        self._progress: dict[str, Any] = {}
        self._is_urgent = False

    def progress(
        self,
        done: int | None = None,
        total: int | None = None,
        message: str | None = None,
        phase: str | None = None,
        *,
        blocking: bool | None = None,
    ) -> None:
        """Report how far the task is; None is what did not change. Cheap to call often.

        Another message, phase or `blocking` shows within half a second, counts within a second.
        `blocking` asks pages to cover the small app's data until it is False, or the task ends.
        """
        counts = {"done": done, "total": total}
        given: dict[str, Any] = {key: int(one) for key, one in counts.items() if one is not None}
        texts = {"message": message, "phase": phase}
        given |= {key: str(one) for key, one in texts.items() if one is not None}
        if blocking is not None:
            given["blocking"] = bool(blocking)
        with self._lock:
            changed = {key: one for key, one in given.items() if self._reported.get(key) != one}
            self._reported.update(changed)
            self._progress.update(changed)
            self._is_urgent = self._is_urgent or not URGENT.isdisjoint(changed)

    def should_stop(self) -> bool:
        """Return True when the task should end soon: time limit, cancel, or a lost lease."""
        self.stopped_for = self.why_stop()
        return self.stopped_for is not None

    # The rest is for the worker.

    def run(self, call: Callable[[], T]) -> T:
        """Return what the task returns, renewing the lease meanwhile; raises what it raises."""
        mark = _current.set(self)
        try:
            with self.held(), self.interruptible():
                return call()
        finally:
            _current.reset(mark)

    def end(self, outcome: str, **details: Any) -> None:
        """Record how the attempt ends, at once or by the worker's own process."""
        with self._lock:
            progress, self._progress = self._progress, {}
        said = {"lease": self._lease, "outcome": outcome, "progress": progress, **details}
        its = self._its
        try:
            its.server.ask(f"{self._path}:end", said, END_S)
        except ServerAway:
            its.report((f"{self._path}:end", said))
        except NotDone as refused:
            logger.warning("operation %s: %s; its end is lost", self.operation_id, refused)
        self.forget()

    def forget(self) -> None:
        """Leave an attempt that is not this worker's any more."""
        with self._lock:
            place, self._place = self._place, None
        if place is not None:
            place.is_running = False

    @property
    def _its(self) -> Reporter:
        assert self._reporter is not None  # noqa: S101 - an operation of a test reports nothing
        return self._reporter

    def news_due_at(self) -> float | None:
        """Return when to write what the task has reported, None if nothing is new."""
        if not self._progress:
            return None
        return self.beat_at + (NEWS_SOON_S if self._is_urgent else NEWS_EVERY_S)

    def beat(self) -> float:
        """Renew the lease, unless the worker's own process does; report new progress."""
        if self._progress or not self._is_kept():
            self._renew()
        return min(NEWS_EVERY_S, self.limits.heartbeat_s)

    def _renew(self) -> None:
        with self._lock:
            progress, self._progress, self._is_urgent = self._progress, {}, False
        try:
            said = {"lease": self._lease, "progress": progress}
            answer = self._its.server.ask(f"{self._path}:beat", said, BEAT_S)
        except ServerAway:
            # The worker's own process says so.
            with self._lock:
                self._progress = {**progress, **self._progress}
        except NotDone:
            self.asked = LOST
        else:
            self._renewed_at, self.asked = self.beat_at, answer.get("stop") or self.asked

    def _is_kept(self) -> bool:
        """Return whether the lease was renewed lately; learn what its renewal was answered."""
        if self._place is not None:
            self._place.looked_at = monotonic()
            renewed_at, answer = self._place.renewed_at, self._place.answer
            if renewed_at > self._renewed_at:
                self._renewed_at, self.asked = renewed_at, ANSWERS[answer] or self.asked
        return monotonic() - self._renewed_at < SILENT * self.limits.heartbeat_s

    def interruption(self, why: str) -> BaseException:
        """Return what to raise in the task: Celery's own error at the time limit."""
        return self._on_time_limit() if why == TIME_LIMIT else super().interruption(why)

    def cut_off(self, why: str) -> None:
        """Record the end of a task that does not end, and kill its pool process, if any."""
        logger.error("operation %s: its task does not end (%s)", self.operation_id, why)
        if why != LOST:
            self.end(why)
        if self._its.is_child:
            os.kill(os.getpid(), signal.SIGKILL)
