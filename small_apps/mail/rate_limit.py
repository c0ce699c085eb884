"""A rate limit of sent messages."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event

from runtime.clock import monotonic

# The delay until a wait notices a stop.
POLL_S = 0.1


@dataclass
class Pace:
    """Allows `rate` messages a minute, evenly spread; None is unlimited."""

    rate: int | None
    _next_at: float | None = field(default=None, init=False)

    @property
    def is_due(self) -> bool:
        """Whether the next message may be sent now."""
        return self._next_at is None or monotonic() >= self._next_at

    def wait(self, should_stop: Callable[[], bool]) -> bool:
        """Wait for the next message's turn; return False if `should_stop()` ends the wait."""
        pause = Event()
        while not should_stop():
            left = 0.0 if self._next_at is None else self._next_at - monotonic()
            if left <= 0:
                if self.rate is not None:
                    self._next_at = monotonic() + 60 / self.rate
                return True
            pause.wait(min(left, POLL_S))
        return False
