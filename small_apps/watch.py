"""How a long reading reports, and learns that it should stop, from whichever thread it runs in."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from small_apps.failures import Stopped

Interrupt = Callable[[], object]


@dataclass
class Watch:
    """One reading's ear and mouth; `stop` may be called from another thread, again and again."""

    should_stop: Callable[[], bool] = lambda: False
    progress: Callable[[int, int | None], None] = lambda _done, _total: None
    _interrupts: list[Interrupt] = field(default_factory=list)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        """Let the reading end: what waits on a server or an engine is interrupted."""
        self._stopped.set()
        for interrupt in tuple(self._interrupts):
            interrupt()

    @property
    def is_stopped(self) -> bool:
        """Whether somebody asked for the end."""
        return self._stopped.is_set() or self.should_stop()

    def check(self) -> None:
        """Raise Stopped when somebody asked for the end."""
        if self.is_stopped:
            raise Stopped

    @contextmanager
    def interrupted_by(self, interrupt: Interrupt) -> Iterator[None]:
        """Let `stop` call `interrupt` while the block runs."""
        self._interrupts.append(interrupt)
        try:
            yield
        finally:
            self._interrupts.remove(interrupt)
