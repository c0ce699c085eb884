"""Progress and cancellation of a long read, from any thread."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tasks.bounded.limits import Stopped

Interrupt = Callable[[], object]


@dataclass
class Watch:
    """Progress and cancellation of one read; any thread may call `stop`, repeatedly."""

    should_stop: Callable[[], bool] = lambda: False
    progress: Callable[[int, int | None], None] = lambda _done, _total: None
    _interrupts: list[Interrupt] = field(default_factory=list)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        """End the read, and interrupt its waits for a server or an engine."""
        self._stopped.set()
        for interrupt in tuple(self._interrupts):
            interrupt()

    @property
    def is_stopped(self) -> bool:
        """Whether the read was asked to stop."""
        return self._stopped.is_set() or self.should_stop()

    def check(self) -> None:
        """Raise Stopped if the read was asked to stop."""
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
