"""The repairs of lasting faults, each in its own thread: a fault may block on a frozen process."""

from collections.abc import Callable
from threading import Event, Thread

from tests.chaos.faults import Fault


class Repairs:
    """Pending repairs, each at its time; `end` makes the remaining ones."""

    def __init__(self) -> None:
        self._threads: list[Thread] = []
        self._ending = Event()
        self._error: BaseException | None = None

    def later(self, fault: Fault, repair: Callable[[], None]) -> None:
        """Repair `fault`, which begins now, at its end."""

        def wait() -> None:
            self._ending.wait(fault.lasts_s)
            try:
                repair()
            except BaseException as error:
                self._error = error

        self._threads.append(Thread(target=wait, name=fault.victim, daemon=True))
        self._threads[-1].start()

    def has(self, victim: str) -> bool:
        return any(one.name == victim and one.is_alive() for one in self._threads)

    def end(self) -> None:
        """Make all pending repairs now; raises the error of a failed one."""
        self._ending.set()
        for one in self._threads:
            one.join()
        if self._error is not None:
            raise self._error
