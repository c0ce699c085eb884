"""Keep the lease of an attempt: renew it, interrupt work that must end, cut off what does not."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from types import FrameType
from typing import Any

CHECK_S = 0.2
# The shortest time between two renewals that report something new, and something urgent.
NEWS_EVERY_S = 1.0
NEWS_SOON_S = 0.2
INTERRUPT = signal.SIGUSR2
CANCELLED, TIME_LIMIT, LOST = "cancelled", "time limit", "lost"


class Interrupted(BaseException):
    """Raised in work that must end now; a BaseException, so that `except Exception` misses it."""


@dataclass(frozen=True)
class Limits:
    """How long an attempt may run, and how long it may take to stop."""

    time_limit_s: float
    heartbeat_s: float
    cancel_grace_s: float
    # So long after the time limit the work is interrupted, and cut off.
    soft_limit_s: float
    hard_limit_s: float

    def why_stop(self, ran_s: float, asked: str | None) -> str | None:
        """Return why work should stop that has run for so long: as `asked`, or None to go on."""
        return asked or (TIME_LIMIT if ran_s >= self.time_limit_s else None)

    def left_s(self, ran_s: float, cancelled_s: float | None) -> float:
        """Return how long work may still take that cannot be interrupted; never negative.

        `cancelled_s` is for how long it has been cancelled, None if it is not.
        """
        left_s = self.time_limit_s + self.soft_limit_s - ran_s
        if cancelled_s is not None:
            left_s = min(left_s, self.cancel_grace_s - cancelled_s)
        return max(0.0, left_s)


@dataclass(frozen=True)
class Due:
    """Why work must end, how long it may go on, and how long it has once it is interrupted."""

    why: str
    patience_s: float
    grace_s: float


class Keeper:
    """Renews the lease of an attempt from a thread, and makes its work end when it must."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        # What a heartbeat has learnt: the attempt was cancelled, or its lease is lost.
        self.asked: str | None = None
        # Whether nothing is left to interrupt.
        self.is_over = False
        self.interrupted_for: str | None = None
        self._raising: BaseException | None = None
        self.is_raised = False
        self._interruptible = False
        self._started = self.beat_at = monotonic()
        self._next_beat = self._started + limits.heartbeat_s
        self._ended = threading.Event()
        self._lock = threading.RLock()

    def beat(self) -> float:
        """Renew the lease and report what is new; return the seconds until the next renewal."""
        raise NotImplementedError

    def news_due_at(self) -> float | None:
        """Return when to report what is new, by the monotonic clock; None if nothing is."""
        raise NotImplementedError

    def cut_off(self, why: str) -> None:
        """End an attempt whose work does not stop, and if possible its process."""
        raise NotImplementedError

    def interruption(self, _why: str) -> BaseException:
        """Return what to raise in the work."""
        return Interrupted()

    def due(self) -> Due | None:
        """Return how the work must end now, None if it may go on."""
        if self.asked is not None:
            return Due(self.asked, 0.0, self.limits.cancel_grace_s)
        if self._ran_s() >= self.limits.time_limit_s + self.limits.soft_limit_s:
            return Due(TIME_LIMIT, 0.0, self.limits.hard_limit_s - self.limits.soft_limit_s)
        return None

    def why_stop(self) -> str | None:
        """Return why the work should stop by itself, None if it may go on."""
        return self.limits.why_stop(self._ran_s(), self.asked)

    def time_left(self) -> timedelta:
        """Return how long the operation may still run; never negative."""
        return timedelta(seconds=max(0.0, self.limits.time_limit_s - self._ran_s()))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Renew the lease while the block runs."""
        beats = threading.Thread(target=self._keep, name="minutebook lease", daemon=True)
        # First: without a free thread, the work does not begin.
        beats.start()
        previous = _set_handler(self._on_signal)
        try:
            yield
        finally:
            self.is_over = True
            self._ended.set()
            beats.join()
            _set_handler(previous)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let the lease interrupt the block: work, never our own writes."""
        self._thread = threading.current_thread()
        self._interruptible = True
        try:
            if self._raising is not None:
                raise self._raising
            yield
        finally:
            with self._lock:
                self._interruptible = False
                if self._raising is not None and self._thread is not threading.main_thread():
                    # An error not raised yet must not hit what runs after the work.
                    _raise_in(self._thread, None)

    def _ran_s(self) -> float:
        return monotonic() - self._started

    def _keep(self) -> None:
        """Renew the lease until the work is over, and make it end when it must."""
        while not self._ended.wait(self._pause_s()):
            if monotonic() >= self._beat_due_at():
                self._beat()
            due = None if self.is_over else self.due()
            if due is not None and not self._makes_end(due):
                return

    def _makes_end(self, due: Due) -> bool:
        """Make the work end; return whether it did, or False after it was cut off."""
        if self._is_over_within(due.patience_s):
            return True
        self._interrupt(due.why)
        if self._is_over_within(due.grace_s):
            return True
        self.cut_off(due.why)
        return False

    def _is_over_within(self, seconds: float) -> bool:
        """Return whether the work is over, once it is or the seconds have passed."""
        give_up_at = monotonic() + seconds
        while not self.is_over and monotonic() < give_up_at:
            self._ended.wait(min(self._pause_s(), max(0.0, give_up_at - monotonic())))
            if self.asked != LOST and monotonic() >= self._beat_due_at():
                self._beat()
        return self.is_over

    def _beat(self) -> None:
        self.beat_at = monotonic()
        self._next_beat = self.beat_at + self.beat()

    def _beat_due_at(self) -> float:
        news_at = self.news_due_at()
        if news_at is None:
            return self._next_beat
        # News that another thread is writing stay due meanwhile.
        return min(self._next_beat, max(news_at, self.beat_at + NEWS_SOON_S))

    def _pause_s(self) -> float:
        return min(CHECK_S, max(0.0, self._beat_due_at() - monotonic()))

    def _interrupt(self, why: str) -> None:
        with self._lock:
            self.interrupted_for, self._raising = why, self.interruption(why)
            if not self._interruptible:
                return
            if self._thread is threading.main_thread():
                os.kill(os.getpid(), INTERRUPT)
            else:
                self.is_raised = True
                _raise_in(self._thread, type(self._raising))

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._interruptible and self._raising is not None:
            self._interruptible, self.is_raised = False, True
            raise self._raising


def _raise_in(thread: threading.Thread, error: type[BaseException] | None) -> None:
    """Raise `error` in a thread at its next Python instruction; None withdraws it."""
    raised = ctypes.py_object(error) if error is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), raised)


def _set_handler(handler: Any) -> Any:
    if threading.current_thread() is not threading.main_thread():
        return None
    return signal.signal(INTERRUPT, handler)
