"""The lease on a running operation: what its heartbeats write, and how its steps are made to end.

A signal to the process's main thread raises Interrupted in the step. If the step does not end, the
thread of the lease ends the operation and kills the process, which Celery's prefork pool replaces.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_bool
from mmap import mmap

import sqlalchemy as sa

from minutebook.lease import CANCELLED, LOST, TIME_LIMIT, Due, Interrupted, Keeper
from models.errors import LeaseLost
from models.operation import OperationState
from models.store.operations import heartbeat
from models.store.operations.end import Outcome, end
from models.store.operations.eta import write_estimate
from models.store.operations.put_back import CUT_OFF, STOPPED_IN_TIME
from models.store.operations.take import Claim
from runtime.config import Settings
from runtime.database import reason_of
from runtime.logs.events import EventLog
from tasks.progress import Progress
from tasks.step_states import Script

logger = EventLog("minutebook.lease")


# Whether the worker stops: set by its main process, and shared with those that the pool forks. It
# has no lock: a child killed while it reads a multiprocessing Event leaves the lock taken, and the
# other children never see the flag.
stopping = c_bool.from_buffer(mmap(-1, 1))

# How long an interrupted step has to return before its process is killed.
LAST_WRITE_S = 1.0

STOPPING = "stopping"
GIVEN_BACK = Outcome(OperationState.PENDING, reason="given back: the worker stopped")
LEASE_LOST = Outcome(OperationState.FAILED, reason="lease lost")
# How the attempt ends if its step is cut off, and if it stops by itself.
_CUT_OFF = {**CUT_OFF, STOPPING: GIVEN_BACK, LOST: LEASE_LOST}
_STOPPED = {**_CUT_OFF, TIME_LIMIT: STOPPED_IN_TIME}


class Lease(Keeper):
    """The lease of one attempt; run its steps within `with lease.held():`."""

    def __init__(self, engine: sa.Engine, claim: Claim, settings: Settings, script: Script) -> None:
        super().__init__(settings.worker.limits(claim.plan.time_limit))
        self.engine = engine
        self.claim = claim
        self.settings = settings.worker
        self.alerts = settings.alert
        # What the steps report; the heartbeat writes what they have not written themselves.
        self.progress = Progress(engine, claim.key, script)
        # Whether the running step saw that it should stop: its partial result then does not count.
        self.stop_was_seen = False
        # The running step, if it must not begin twice.
        self.unrepeatable: str | None = None
        # How a heartbeat found that another process has the operation.
        self.lost_by: LeaseLost | None = None

    def should_stop(self) -> bool:
        """Return True when the step should end soon: time limit, cancel, or a stopping worker."""
        ending = self.asked_to_end()
        self.stop_was_seen = self.stop_was_seen or ending is not None
        return ending is not None

    def asked_to_end(self) -> Outcome | None:
        """Return how the operation ends if its step stops now, None if it may go on."""
        why = self.why_stop()
        return None if why is None else _STOPPED[why]

    def why_stop(self) -> str | None:
        return STOPPING if stopping.value else super().why_stop()

    def due(self) -> Due | None:
        # A stopping worker lets a step finish in the grace; any other reason interrupts it now.
        if self.asked == LOST:
            return Due(LOST, 0.0, LAST_WRITE_S)
        if stopping.value:
            return Due(STOPPING, self.settings.stop_grace_s, LAST_WRITE_S)
        return super().due()

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let the lease interrupt the block: for a step, never for our own writes.

        If an interrupted block raises another error, Interrupted is raised instead: an error in its
        cleanup, or one into which a library turns any exception, is not the step's failure.
        """
        try:
            with super().interruptible():
                yield
        except Interrupted:
            raise
        except BaseException as error:
            if not self.is_raised:
                raise
            raise Interrupted from error

    def ending(self) -> Outcome:
        """Return how an attempt ends whose step was interrupted: it fails if it may not repeat."""
        ending = _CUT_OFF[self.interrupted_for or LOST]
        if ending is not GIVEN_BACK or self.unrepeatable is None:
            return ending
        error = f"the worker stopped while step {self.unrepeatable} was running"
        return Outcome(OperationState.FAILED, error=error, reason="cut off")

    def news_due_at(self) -> float | None:
        """Return when to write what the steps reported, None if nothing is new."""
        return None if self.is_over else self.progress.due_at()

    def beat(self) -> float:
        """Renew the lease and write what is new; return the seconds until the next renewal."""
        key, expected = self.claim.key, self.claim.plan.policy.expected
        try:
            with (
                self.progress.being_written(waits=False) as story,
                self.engine.begin() as connection,
            ):
                is_cancelled = heartbeat.beat(connection, key, story)
                if self.progress.wants_estimate:
                    self.progress.wants_estimate = False
                    write_estimate(connection, key, expected)
        except LeaseLost as error:
            self.asked = LOST
            self.lost_by = error
        except sa.exc.SQLAlchemyError as error:
            self.progress.wants_estimate = True
            # After a database error the sweep does not trust a lease's age either: go on.
            logger.warning(
                "heartbeat_failed",
                "heartbeat of {operation}: database unavailable: {error}",
                self.claim.id,
                reason_of(error),
            )
            return min(1.0, self.settings.heartbeat_s)
        else:
            if is_cancelled:
                self.asked = CANCELLED
        return self.settings.heartbeat_s

    def cut_off(self, _why: str) -> None:
        """End an attempt whose step does not stop, and kill its process."""
        ending = self.ending()
        logger.error(
            "step_killed",
            "operation {operation} attempt {attempt}: a step does not end "
            "({reason}); killing its process",
            self.claim.id,
            self.claim.attempt,
            ending.reason,
        )
        try:
            if self.asked != LOST:
                with self.engine.begin() as connection:
                    end(connection, self.claim.key, ending, alerts=self.alerts)
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
