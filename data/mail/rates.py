"""The rates of sent messages: of one operation, and of a small app over all of its workers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event

from models.limits import sent_enough
from models.store import usage
from models.store.usage import Used
from runtime.clock import monotonic
from tasks.step_context import WorkContext

# The delay until a wait notices a stop.
STOP_POLL_S = 0.1
# How often a message that waits for its small app asks again.
POLL_S = 1.0
# Counted at once, so that not every message needs a transaction more.
MOST_AT_ONCE = 20


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
            pause.wait(min(left, STOP_POLL_S))
        return False


@dataclass
class AppRate:
    """Lets a message wait until its small app may send one more; a rate of 0 is no limit."""

    context: WorkContext
    poll_s: float = POLL_S
    _left: int = field(default=0, init=False)

    def wait(self, before: Callable[[], None]) -> bool:
        """Wait for one message; return False if the step should stop. `before` precedes a wait."""
        if self._is_granted():
            return True
        before()
        self.context.logger.info(sent_enough(self._rate))
        pause = Event()
        while not self.context.should_stop():
            if self._is_granted():
                return True
            self.context.progress(message=sent_enough(self._rate))
            pause.wait(self.poll_s)
        return False

    @property
    def _rate(self) -> int:
        return self.context.settings.limits.messages

    def _is_granted(self) -> bool:
        if self._rate == 0:
            return True
        if self._left == 0:
            some = min(MOST_AT_ONCE, max(1, self._rate // 10))
            with self.context.engine.begin() as connection:
                its = (self.context.small_app.id, Used.MESSAGES)
                self._left = usage.spend(connection, *its, some, self._rate)
        if self._left == 0:
            return False
        self._left -= 1
        return True
