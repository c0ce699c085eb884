"""Keep messages apart, as a mail server's limit wants it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event

from runtime.clock import monotonic

# How soon a wait notices that it should end.
LOOK_S = 0.1


@dataclass
class Pace:
    """Lets so many pass a minute, evenly; `rate` None: as many as come."""

    rate: int | None
    _next_at: float | None = field(default=None, init=False)

    @property
    def is_due(self) -> bool:
        """Whether the next may pass at once."""
        return self._next_at is None or monotonic() >= self._next_at

    def wait(self, should_stop: Callable[[], bool]) -> bool:
        """Return True when the next may pass, False as soon as `should_stop()` holds."""
        pause = Event()
        while not should_stop():
            left = 0.0 if self._next_at is None else self._next_at - monotonic()
            if left <= 0:
                if self.rate is not None:
                    self._next_at = monotonic() + 60 / self.rate
                return True
            pause.wait(min(left, LOOK_S))
        return False
