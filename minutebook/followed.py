"""An operation that a followed Celery task runs, as the task and its worker see it."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from time import monotonic
from types import FrameType
from typing import Any, TypeVar
from uuid import UUID

from minutebook.channel import AgentAway, Channel

logger = logging.getLogger("minutebook.follow")

T = TypeVar("T")

CHECK_S = 0.2
PROGRESS_S = 1.0
ANSWER_S = 30.0
# Longer than the agent keeps an end that the database does not take.
END_S = 660.0
AGAIN_S = 0.5
INTERRUPT = signal.SIGUSR2
# The message header that names the operation.
HEADER = "minutebook"
CANCELLED, TIME_LIMIT, LOST = "cancelled", "time limit", "lost"

_current: ContextVar[FollowedOperation | None] = ContextVar("minutebook_operation", default=None)


class Interrupted(BaseException):
    """Raised in a task that must end now, because it was cancelled or lost its lease.

    A BaseException, so that `except Exception` misses it.
    """


def _instant(text: str) -> datetime:
    # Before Python 3.11 it does not know Z.
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def current_operation() -> FollowedOperation | None:
    """Return the running task's operation; None outside a task that Minutebook sent."""
    return _current.get()


class FollowedOperation:
    """A task's operation: what the task may read and report. Instants are aware UTC."""

    def __init__(self, channel: Channel, claim: dict[str, Any], on_time_limit: type[BaseException]):
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
        self._channel = channel
        self._limits = claim["limits"]
        # The random name under which it was claimed: the next agent knows it by that.
        self._delivery: str = claim["delivery"]
        self._on_time_limit = on_time_limit
        self._started = monotonic()
        self._ended = threading.Event()
        self._lock = threading.RLock()
        self._progress: dict[str, Any] = {}
        self._asked: str | None = None
        self._seen: str | None = None
        self._raising: BaseException | None = None
        self._interruptible = False

    def progress(
        self,
        done: int | None = None,
        total: int | None = None,
        message: str | None = None,
        phase: str | None = None,
    ) -> None:
        """Report how far the task is; written at most once a second, cheap to call often."""
        counts = {"done": done, "total": total}
        given: dict[str, Any] = {key: int(one) for key, one in counts.items() if one is not None}
        texts = {"message": message, "phase": phase}
        given |= {key: str(one) for key, one in texts.items() if one is not None}
        with self._lock:
            self._progress.update(given)

    def time_left(self) -> timedelta:
        """Return how long the operation may still run; never negative."""
        return max(timedelta(0), timedelta(seconds=-self._over_s()))

    def should_stop(self) -> bool:
        """Return True when the task should end soon: time limit, cancel, or a lost lease."""
        self._seen = self._asked_to_end()
        return self._seen is not None

    # The rest is for the worker.

    @property
    def stopped_for(self) -> str | None:
        """Why a task that called `should_stop` should have ended."""
        return self._seen

    @property
    def interrupted_for(self) -> str | None:
        return self._asked if self._raising is not None else None

    def run(self, call: Callable[[], T]) -> T:
        """Return what the task returns, renewing the lease meanwhile; raises what it raises."""
        beats = threading.Thread(target=self._keep, name="minutebook lease", daemon=True)
        previous = _set_handler(self._on_signal)
        mark = _current.set(self)
        try:
            with self._open_to_interruption():
                beats.start()
                return call()
        finally:
            _current.reset(mark)
            self._ended.set()
            beats.join()
            _set_handler(previous)

    def end(self, outcome: str, **details: Any) -> str:
        """Record how the attempt ends; return the operation's state, or `lost`."""
        with self._lock:
            progress, self._progress = self._progress, {}
        ending = {"verb": "end", "outcome": outcome, "progress": progress, **details}
        give_up_at = monotonic() + END_S
        while True:
            try:
                return str(self._ask(ending, END_S)["state"])
            except AgentAway as error:
                if monotonic() >= give_up_at:
                    logger.error("the end of %s is not recorded: %s", self.operation_id, error)
                    return LOST
                threading.Event().wait(AGAIN_S)

    def close(self) -> None:
        self._channel.close()

    def _ask(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        if not self._channel.is_open:
            # A new agent does not know this connection's operation.
            resume = {"id": str(self.operation_id), "attempt": self.attempt}
            self._channel.ask({"verb": "resume", "delivery": self._delivery, **resume}, ANSWER_S)
        return self._channel.ask(request, timeout_s)

    def _over_s(self) -> float:
        return float(monotonic() - self._started - self._limits["time_limit_s"])

    def _asked_to_end(self) -> str | None:
        return self._asked or (TIME_LIMIT if self._over_s() >= 0 else None)

    def _keep(self) -> None:
        next_beat = monotonic() + self._limits["heartbeat_s"]
        next_progress = monotonic() + PROGRESS_S
        while not self._ended.wait(CHECK_S):
            now = monotonic()
            if now >= next_beat or (self._progress and now >= next_progress):
                next_progress = now + PROGRESS_S
                next_beat = now + (self._limits["heartbeat_s"] if self._beat() else PROGRESS_S)
            grace_s = self._due_end()
            if grace_s is not None:
                self._end_task(grace_s)
                return

    def _beat(self) -> bool:
        """Renew the lease and report new progress; return False to try again soon."""
        with self._lock:
            progress, self._progress = self._progress, {}
        try:
            answer = self._ask({"verb": "beat", "progress": progress}, ANSWER_S)
        except AgentAway as error:
            logger.warning("heartbeat of %s: no agent: %s", self.operation_id, error)
            with self._lock:
                self._progress = {**progress, **self._progress}
            return False
        if answer.get("state") in {LOST, CANCELLED}:
            self._asked = answer["state"]
        return answer.get("state") != "away"

    def _due_end(self) -> float | None:
        """Return the grace in seconds of a task that must end now; None if it need not."""
        if self._asked is not None:
            return float(self._limits["cancel_grace_s"])
        if self._over_s() >= self._limits["soft_limit_s"]:
            self._asked = TIME_LIMIT
            return float(self._limits["hard_limit_s"] - self._limits["soft_limit_s"])
        return None

    def _end_task(self, grace_s: float) -> None:
        """Interrupt the task; after the grace record its end and kill its pool process, if any."""
        is_time = self._asked == TIME_LIMIT
        self._interrupt(self._on_time_limit() if is_time else Interrupted(self._asked))
        give_up_at = monotonic() + grace_s
        while not self._ended.wait(min(self._limits["heartbeat_s"], max(0.05, grace_s))):
            if monotonic() >= give_up_at:
                break
            if self._asked != LOST:
                self._beat()
        if self._ended.is_set():
            return
        logger.error("operation %s: its task does not end (%s)", self.operation_id, self._asked)
        if self._asked != LOST:
            self.end(TIME_LIMIT if is_time else "cancelled")
        if self._limits["is_child"]:
            os.kill(os.getpid(), signal.SIGKILL)

    def _interrupt(self, error: BaseException) -> None:
        with self._lock:
            if not self._interruptible:
                return
            self._raising = error
            if self._thread is threading.main_thread():
                os.kill(os.getpid(), INTERRUPT)
            else:
                _raise_in(self._thread, type(error))

    @contextmanager
    def _open_to_interruption(self) -> Iterator[None]:
        self._thread = threading.current_thread()
        self._interruptible = True
        try:
            yield
        finally:
            with self._lock:
                self._interruptible = False
                if self._raising is not None and self._thread is not threading.main_thread():
                    # An error not raised yet must not hit what runs after the task.
                    _raise_in(self._thread, None)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._interruptible and self._raising is not None:
            self._interruptible = False
            raise self._raising


def _raise_in(thread: threading.Thread, error: type[BaseException] | None) -> None:
    """Raise `error` in a thread at its next Python instruction; None withdraws it."""
    raised = ctypes.py_object(error) if error is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), raised)


def _set_handler(handler: Any) -> Any:
    if threading.current_thread() is not threading.main_thread():
        return None
    return signal.signal(INTERRUPT, handler)
