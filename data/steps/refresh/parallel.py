"""Parallel work in threads, supervised by the step's own thread.

The lease interrupts only that thread, and only that thread writes to the database: it waits in
short turns, reports progress, and stops the others if the step should stop.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import TypeVar

from tasks.bounded.limits import Watch

CHECK_S = 0.1
# Threads of one refresh.
AT_ONCE = 4
T = TypeVar("T")
Act = Callable[[Watch], T]
Note = Callable[[str, int, int | None], None]


def run_all(
    acts: Mapping[str, Act[T]],
    should_stop: Callable[[], bool],
    note: Note,
    done: Callable[[str, Future[T]], None],
) -> None:
    """Run named `acts` in threads, four at once; call `done` in this one with each as it ends.

    `note` gets their progress. The future of an act that had not begun before a stop is cancelled.
    An error of `done`, or an interruption, stops the others at their next check.
    """
    if not acts:
        return
    # The last progress of each thread that is not reported yet.
    progress: dict[str, tuple[int, int | None]] = {}
    watches = {name: Watch(should_stop, partial(_keep, progress, name)) for name in acts}
    pending: set[Future[T]] = set()
    pool = ThreadPoolExecutor(min(AT_ONCE, len(acts)), thread_name_prefix="source")
    try:
        names = {pool.submit(act, watches[name]): name for name, act in acts.items()}
        pending = set(names)
        while pending:
            ended, pending = wait(pending, CHECK_S, FIRST_COMPLETED)
            for name in [*progress]:
                note(name, *progress.pop(name))
            for future in sorted(ended, key=lambda one: list(acts).index(names[one])):
                done(names[future], future)
            if should_stop():
                _stop(watches, pending)
    finally:
        _stop(watches, set())
        # A thread that ignores the stop must not delay the end of the operation.
        pool.shutdown(wait=not pending, cancel_futures=True)


def _keep(
    progress: dict[str, tuple[int, int | None]], name: str, done: int, total: int | None
) -> None:
    progress[name] = (done, total)


def _stop(watches: Mapping[str, Watch], pending: set[Future[T]]) -> None:
    for future in pending:
        future.cancel()
    for watch in watches.values():
        watch.stop()
