"""The repairs of lasting faults, in their own thread: a fault may block on a frozen process."""

import heapq
from collections.abc import Callable
from itertools import count
from threading import Event, Lock, Thread

from runtime.clock import monotonic
from tests.chaos.faults import Fault

POLL_S = 0.05


class Repairs:
    """Pending repairs, each at its time; `end` makes the remaining ones."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, int, str, Callable[[], None]]] = []
        self._numbers = count()
        self._lock = Lock()
        self._ending = Event()
        self._error: BaseException | None = None
        self._thread = Thread(target=self._follow, name="repairs", daemon=True)

    def begin(self) -> None:
        """Start the repairs."""
        self._thread.start()

    def later(self, fault: Fault, repair: Callable[[], None]) -> None:
        """Repair `fault`, which begins now, at its end."""
        due = monotonic() + fault.lasts_s
        with self._lock:
            heapq.heappush(self._waiting, (due, next(self._numbers), fault.victim, repair))

    def has(self, victim: str) -> bool:
        """Return whether a repair of `victim` is pending."""
        with self._lock:
            return any(one == victim for _, _, one, _ in self._waiting)

    def end(self) -> None:
        """Make all pending repairs now; raises the error of a failed one."""
        self._ending.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _follow(self) -> None:
        is_over = False
        while not is_over:
            is_over = self._ending.wait(POLL_S)
            try:
                while self._repair_one(at_once=is_over):
                    pass
            except BaseException as error:
                self._error = error

    def _repair_one(self, *, at_once: bool) -> bool:
        with self._lock:
            if not self._waiting or not (at_once or self._waiting[0][0] <= monotonic()):
                return False
            entry = self._waiting[0]
        try:
            entry[3]()
        finally:
            with self._lock:
                self._waiting.remove(entry)
                heapq.heapify(self._waiting)
        return True
