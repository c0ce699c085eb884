"""Parallel work in threads, supervised by the step's own thread.

The lease interrupts only that thread, and only that thread writes to the database: it waits in
short turns, reports progress, and stops the others if the step should stop.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Generic, TypeVar

from tasks.bounded.watch import Watch

CHECK_S = 0.1
# Threads of one refresh.
AT_ONCE = 4
T = TypeVar("T")
Act = Callable[[Watch], T]
Note = Callable[[str, int, int | None], None]


class Parallel(Generic[T]):
    """Runs named `act`s in threads, four at once; calls `note` with their progress."""

    def __init__(self, should_stop: Callable[[], bool], note: Note) -> None:
        self._should_stop = should_stop
        self._note = note
        # The last progress of each thread, not yet reported by the waiting thread.
        self._progress: dict[str, tuple[int, int | None]] = {}

    def run(self, acts: Mapping[str, Act[T]], done: Callable[[str, Future[T]], None]) -> None:
        """Run all `acts`, and call `done` in this thread with each as it ends.

        The future of an act that had not begun before a stop is cancelled. An error of `done`, or
        an interruption, stops the others at their next check.
        """
        if not acts:
            return
        watches = {name: self._watch(name) for name in acts}
        pending: set[Future[T]] = set()
        pool = ThreadPoolExecutor(min(AT_ONCE, len(acts)), thread_name_prefix="source")
        try:
            names = {pool.submit(act, watches[name]): name for name, act in acts.items()}
            pending = set(names)
            while pending:
                ended, pending = wait(pending, CHECK_S, FIRST_COMPLETED)
                self._report()
                for future in sorted(ended, key=lambda one: list(acts).index(names[one])):
                    done(names[future], future)
                if self._should_stop():
                    _stop(watches, pending)
        finally:
            _stop(watches, set())
            # A thread that ignores the stop must not delay the end of the operation.
            pool.shutdown(wait=not pending, cancel_futures=True)

    def _watch(self, name: str) -> Watch:
        return Watch(self._should_stop, partial(self._keep, name))

    def _keep(self, name: str, done: int, total: int | None) -> None:
        self._progress[name] = (done, total)

    def _report(self) -> None:
        progress, self._progress = self._progress, {}
        for name, (done, total) in progress.items():
            self._note(name, done, total)


def _stop(watches: Mapping[str, Watch], pending: set[Future[T]]) -> None:
    for future in pending:
        future.cancel()
    for watch in watches.values():
        watch.stop()
