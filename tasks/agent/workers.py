"""The workers that an agent serves: one that started it, or all that connect to a sidecar."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from minutebook.error_text import are_parameters, bounded
from models.store import workers as worker_store
from models.store.clocks import read_both
from models.store.workers import Heartbeat
from runtime.clock import monotonic
from runtime.database import reason_of
from runtime.logs.events import EventLog
from runtime.skew import SkewWatch
from tasks.agent.bounds import Bounds

logger = EventLog("minutebook.agent")

# A worker repeats what it follows every two seconds.
HEARD_S = 10.0
# The largest that the table takes: all workers are recorded together, and none may block others.
LARGEST_PID = 2**31 - 1


def described_worker(given: Mapping[str, Any]) -> Heartbeat:
    """Return the worker that a client describes.

    Raises KeyError, TypeError, ValueError, AttributeError or OverflowError.
    """
    follows = tuple(str(name) for name in given["follows"])
    queues = ",".join(str(name) for name in given["queues"])
    pid = int(given["pid"])
    if not 0 <= pid <= LARGEST_PID:
        raise ValueError(f"pid {pid} is not the id of a process")
    seen = Heartbeat(str(given["name"]), queues, pid, follows=follows)
    return replace(seen, signatures=_signatures(given.get("signatures") or {}))


def _signatures(given: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the parameters of tasks, within the bounds of the client.

    A task with a text that is no parameter is left out: the other texts are not all that it takes.
    """
    read = ((str(task), [str(one) for one in texts]) for task, texts in given.items())
    return bounded((task, texts) for task, texts in read if are_parameters(texts))


class Workers:
    """The workers known now, each recorded as alive in the table `workers`."""

    def __init__(
        self, engine: sa.Engine, clock: SkewWatch, own: Heartbeat | None, bounds: Bounds
    ) -> None:
        self._engine = engine
        self._bounds = bounds
        self._clock = clock
        self._own = own
        self._heard: dict[str, tuple[Heartbeat, float]] = {}
        # When the last worker that followed a task left: a claim of it may still lie in a socket.
        self._left: dict[str, float] = {}
        self._lock = threading.Lock()

    def follows(self, task: str) -> bool:
        """Return whether one of the workers follows the task, or did until just now."""
        with self._lock:
            heard = [one for one, _ in self._heard.values()]
            left_at = self._left.get(task)
        if left_at is not None and monotonic() - left_at < HEARD_S:
            return True
        known = heard if self._own is None else [self._own, *heard]
        return any(task in (one.follows or ()) for one in known)

    def within_bounds(self, worker: Heartbeat) -> Heartbeat:
        """Return a worker as it is recorded: it follows what the agent serves, and no more."""
        follows = self._bounds.within(worker.follows or ())
        signatures = {task: its for task, its in worker.signatures.items() if task in follows}
        return replace(worker, follows=follows, signatures=signatures)

    def is_news(self, worker: Heartbeat) -> bool:
        """Note that a worker is alive; return whether that has to be recorded at once."""
        with self._lock:
            known = self._heard.get(worker.name)
            self._heard[worker.name] = (worker, monotonic())
        return known is None or known[0] != worker

    def write(self, connection: sa.Connection, workers: Sequence[Heartbeat]) -> None:
        """Write that workers are alive."""
        _, skew_s = read_both(connection)
        self._clock.note(skew_s)
        for one in map(self.within_bounds, workers):
            worker_store.beat(connection, replace(one, skew_s=skew_s))

    def left(self, worker: Heartbeat) -> None:
        """Record that a worker has stopped, unless another of its name has taken its place."""
        with self._lock:
            known = self._heard.get(worker.name)
            if known is None or known[0] != worker:
                return
            del self._heard[worker.name]
            self._left |= dict.fromkeys(worker.follows or (), monotonic())
        self._record_stop(worker)

    def record(self) -> None:
        """Record that each worker is alive, and what it follows."""
        now = monotonic()
        with self._lock:
            heard = [one for one, at in self._heard.values() if now - at < HEARD_S]
        self._record(heard if self._own is None else [self._own, *heard])

    def record_stop(self) -> None:
        """Record that the worker which started this agent has stopped."""
        if self._own is not None:
            self._record_stop(self._own)

    def _record(self, workers: list[Heartbeat]) -> None:
        try:
            with self._engine.begin() as connection:
                self.write(connection, workers)
        except sa.exc.SQLAlchemyError as error:
            logger.warning(
                "database_unavailable", "database unavailable: {error}", reason_of(error)
            )

    def _record_stop(self, worker: Heartbeat) -> None:
        try:
            with self._engine.begin() as connection:
                worker_store.stopped(connection, worker.name, is_follower=True)
        except sa.exc.SQLAlchemyError as error:
            logger.warning(
                "database_unavailable",
                "database unavailable while stopping: {error}",
                reason_of(error),
            )
