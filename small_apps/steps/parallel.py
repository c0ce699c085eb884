"""Work on several things at once, in threads, while the step's own thread stays awake.

The lease interrupts that thread alone, and it alone writes to the database: it waits in short
turns, tells of progress, and ends the others when the step is to stop.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Generic, TypeVar

from small_apps.watch import Watch

CHECK_S = 0.1
T = TypeVar("T")
Act = Callable[[Watch], T]
Note = Callable[[str, int, int | None], None]


class SideBySide(Generic[T]):
    """Runs `act`s by name, at most `limit` at once; `note` is told how far each one is."""

    def __init__(self, limit: int, should_stop: Callable[[], bool], note: Note) -> None:
        self._limit = limit
        self._should_stop = should_stop
        self._note = note
        # What the threads told last; the waiting thread passes it on.
        self._told: dict[str, tuple[int, int | None]] = {}

    def run(self, acts: Mapping[str, Act[T]], done: Callable[[str, Future[T]], None]) -> None:
        """Run all `acts`, and call `done` in this thread with each as it ends.

        A future is cancelled when its act had not begun before a stop. What `done` raises, or an
        interruption, ends the others as soon as they listen.
        """
        if not acts:
            return
        watches = {name: self._watch(name) for name in acts}
        pending: set[Future[T]] = set()
        pool = ThreadPoolExecutor(min(self._limit, len(acts)), thread_name_prefix="source")
        try:
            names = {pool.submit(act, watches[name]): name for name, act in acts.items()}
            pending = set(names)
            while pending:
                ended, pending = wait(pending, CHECK_S, FIRST_COMPLETED)
                self._pass_on()
                for future in sorted(ended, key=lambda one: list(acts).index(names[one])):
                    done(names[future], future)
                if self._should_stop():
                    _stop(watches, pending)
        finally:
            _stop(watches, set())
            # One that hears nothing must not hold up the end of the operation.
            pool.shutdown(wait=not pending, cancel_futures=True)

    def _watch(self, name: str) -> Watch:
        return Watch(self._should_stop, partial(self._keep, name))

    def _keep(self, name: str, done: int, total: int | None) -> None:
        self._told[name] = (done, total)

    def _pass_on(self) -> None:
        told, self._told = self._told, {}
        for name, (done, total) in told.items():
            self._note(name, done, total)


def _stop(watches: Mapping[str, Watch], pending: set[Future[T]]) -> None:
    for future in pending:
        future.cancel()
    for watch in watches.values():
        watch.stop()
