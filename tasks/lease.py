"""The lease on a running operation: a thread sends heartbeats and interrupts a step that must end.

A signal to the process's main thread raises Interrupted in the step. If the step does not end, the
thread ends the operation and kills the process, which Celery's prefork pool replaces.
"""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from mmap import mmap
from types import FrameType

import sqlalchemy as sa

from minutebook.error_text import text_of
from models.errors import LeaseLost
from models.operation import OperationState
from models.store.operations import running
from models.store.operations.claims import Claim
from models.store.operations.finish import Ending, end
from models.store.operations.retry_policy import CANCELLED, STOPPED_IN_TIME, TIME_LIMIT
from models.store.operations.running import Story
from runtime.clock import monotonic
from runtime.database import reason_of
from runtime.db_retry import KEEP_S
from runtime.sections import AlertSettings
from runtime.sections.processes import WorkerSettings
from tasks.log_lines import LogLines

logger = logging.getLogger("minutebook.lease")


class SharedFlag:
    """A flag that a process shares with its forked children.

    It has no lock: a child killed while it reads a multiprocessing Event leaves the lock taken, and
    the other children never see the flag.
    """

    def __init__(self) -> None:
        self._byte = mmap(-1, 1)

    def is_set(self) -> bool:
        return self._byte[0] == 1

    def set(self) -> None:
        self._byte[0] = 1

    def clear(self) -> None:
        self._byte[0] = 0


# Made before the pool forks; the worker's main process sets it.
stopping = SharedFlag()

CHECK_S = 0.2
# The shortest time between two writes of the row, for progress and for log lines.
WRITE_EVERY_S = 1.0
# How long an interrupted step has to return before its process is killed.
LAST_WRITE_S = 1.0
# How long an end may take to be recorded, retries included; then the sweep takes the operation.
RECORDED_WITHIN_S = 2 * KEEP_S
INTERRUPT = signal.SIGUSR2


class Interrupted(BaseException):
    """Raised in a step that must end now; a BaseException, so that `except Exception` misses it."""

    def __init__(self, ending: Ending) -> None:
        self.ending = ending
        super().__init__(ending.reason)


GIVEN_BACK = Ending(OperationState.PENDING, reason="given back: the worker stopped")
LOST = Ending(OperationState.FAILED, reason="lease lost")


@dataclass
class Lease:
    """The heartbeat of one attempt; run its steps within `with lease.held():`."""

    engine: sa.Engine
    claim: Claim
    settings: WorkerSettings
    alerts: AlertSettings
    # The lines that the steps logged; the heartbeat writes those that the steps did not.
    lines: LogLines = field(default_factory=LogLines)
    interruption: Interrupted | None = None
    lost: bool = False
    # Whether the running step saw that it should stop: its partial result then does not count.
    stop_was_seen: bool = False
    # The running step, if it must not begin twice.
    unrepeatable: str | None = None
    _cancelled_at: float | None = None
    _interruptible: bool = False
    _is_over: bool = False
    # When the steps were over, while the end is being recorded.
    _over_at: float | None = None
    _ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._started = monotonic()

    def time_left(self) -> timedelta:
        """Return how long the operation may still run; never negative."""
        limit = self.claim.plan.time_limit
        return max(timedelta(0), limit - timedelta(seconds=monotonic() - self._started))

    def should_stop(self) -> bool:
        """Return True when the step should end soon: time limit, cancel, or a stopping worker."""
        ending = self.asked_to_end()
        self.stop_was_seen = self.stop_was_seen or ending is not None
        return ending is not None

    def asked_to_end(self) -> Ending | None:
        """Return how the operation ends if its step stops now, None if it may go on."""
        if stopping.is_set():
            return GIVEN_BACK
        if self._cancelled_at is not None:
            return CANCELLED
        return None if self.time_left() else STOPPED_IN_TIME

    @contextmanager
    def held(self) -> Iterator[None]:
        """Renew the lease while the block runs."""
        previous = _set_handler(self._on_signal)
        beats = threading.Thread(target=self._keep, name="lease", daemon=True)
        beats.start()
        try:
            yield
        finally:
            self._is_over = True
            self._ended.set()
            beats.join()
            _set_handler(previous)

    def steps_are_over(self) -> None:
        """From now on only renew the lease: the end is being recorded.

        After a bound the lease is left to run out.
        """
        self._is_over, self._over_at = True, monotonic()

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let the lease interrupt the block: for a step, never for our own writes.

        If an interrupted block raises another error, Interrupted is raised instead: an error in its
        cleanup, or one into which a library turns any exception, is not the step's failure.
        """
        self._interruptible = True
        try:
            if self.interruption is not None:
                raise self.interruption
            yield
        except Interrupted:
            raise
        except BaseException as error:
            # The signal handler clears the first flag once it has interrupted the block.
            if self._interruptible or self.interruption is None:
                raise
            logger.warning(
                "operation %s attempt %d: its interrupted step raised an error: %s",
                self.claim.id,
                self.claim.attempt,
                text_of(error),
                exc_info=error,
            )
            raise self.interruption from error
        finally:
            self._interruptible = False

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._interruptible and self.interruption is not None:
            self._interruptible = False
            raise self.interruption

    def _keep(self) -> None:
        last_beat = monotonic()
        next_beat = last_beat + self.settings.heartbeat_s
        while not self._ended.wait(CHECK_S) and not self._gives_up():
            may_write = self.lines.has_new and monotonic() >= last_beat + WRITE_EVERY_S
            if may_write or monotonic() >= next_beat:
                last_beat = monotonic()
                next_beat = last_beat + self._beat()
            ending, grace_s = self._due_ending()
            if ending is not None and not self._is_over:
                self._end_step(ending, grace_s)

    def _gives_up(self) -> bool:
        """Return whether the end takes too long to be recorded."""
        if self._over_at is None or monotonic() < self._over_at + RECORDED_WITHIN_S:
            return False
        logger.error(
            "operation %s attempt %d: its end is not recorded after %.0f s; its lease runs out",
            self.claim.id,
            self.claim.attempt,
            RECORDED_WITHIN_S,
        )
        return True

    def _beat(self) -> float:
        """Renew the lease and write new log lines; return the seconds until the next renewal."""
        try:
            with self.lines.being_written(waits=False) as lines, self.engine.begin() as connection:
                is_cancelled = running.beat(connection, self.claim.id, self.claim.attempt)
                running.write_lines(connection, self.claim.id, Story({}, lines))
        except LeaseLost:
            self.lost = True
        except sa.exc.SQLAlchemyError as error:
            # After a database error the sweep does not trust a lease's age either: go on.
            logger.warning(
                "heartbeat of %s: database unavailable: %s", self.claim.id, reason_of(error)
            )
            return min(1.0, self.settings.heartbeat_s)
        else:
            if is_cancelled and self._cancelled_at is None:
                self._cancelled_at = monotonic()
        return self.settings.heartbeat_s

    def _due_ending(self) -> tuple[Ending | None, float]:
        """Return how the attempt must end now, if it must, and the step's grace in seconds."""
        if self.lost:
            return LOST, LAST_WRITE_S
        if stopping.is_set():
            return GIVEN_BACK, self.settings.stop_grace_s
        if self._cancelled_at is not None:
            return CANCELLED, self.settings.cancel_grace_s
        over_s = monotonic() - self._started - self.claim.plan.time_limit.total_seconds()
        # should_stop() turned true at the limit; the step is interrupted later, then killed.
        if over_s >= self.settings.soft_limit_s:
            return TIME_LIMIT, self.settings.hard_limit_s - self.settings.soft_limit_s
        return None, 0.0

    def _end_step(self, ending: Ending, grace_s: float) -> None:
        """Interrupt the step; after the grace record the end and kill this process."""
        self.interruption = Interrupted(self._when_cut_off(ending))
        # A stopping worker lets a step finish in the grace; any other reason interrupts it now.
        if ending is not GIVEN_BACK:
            os.kill(os.getpid(), INTERRUPT)
        if self._wait_beating(grace_s):
            return
        if ending is GIVEN_BACK:
            os.kill(os.getpid(), INTERRUPT)
            if self._wait_beating(LAST_WRITE_S):
                return
        self._abandon(self._when_cut_off(ending))

    def _when_cut_off(self, ending: Ending) -> Ending:
        """Return how the attempt ends if its step is cut off; it fails if it may not repeat."""
        if ending is not GIVEN_BACK or self.unrepeatable is None:
            return ending
        error = f"the worker stopped while step {self.unrepeatable} was running"
        return Ending(OperationState.FAILED, error=error, reason="cut off")

    def _wait_beating(self, seconds: float) -> bool:
        """Return whether the steps are over, once they are or the seconds have passed."""
        end = monotonic() + seconds
        next_beat = monotonic() + self.settings.heartbeat_s
        while not self._is_over and monotonic() < end:
            self._ended.wait(min(CHECK_S, max(0.0, end - monotonic())))
            if not self.lost and monotonic() >= next_beat:
                next_beat = monotonic() + self._beat()
        return self._is_over

    def _abandon(self, ending: Ending) -> None:
        logger.error(
            "operation %s attempt %d: a step does not end (%s); killing its process",
            self.claim.id,
            self.claim.attempt,
            ending.reason,
        )
        try:
            if not self.lost:
                with self.engine.begin() as connection:
                    id, attempt = self.claim.id, self.claim.attempt
                    end(connection, id, attempt, ending, alerts=self.alerts)
        finally:
            os.kill(os.getpid(), signal.SIGKILL)


def _set_handler(handler: "signal._HANDLER") -> "signal._HANDLER":
    if threading.current_thread() is not threading.main_thread():
        return None
    return signal.signal(INTERRUPT, handler)
