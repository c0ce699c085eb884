"""The rate of a small app's messages, over all of its operations and workers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event

from models.limits import sent_enough
from models.store import usage
from models.store.usage import Used
from small_apps.step_context import WorkContext

# How often a message that waits asks again.
POLL_S = 1.0
# Counted at once, so that not every message needs a transaction more.
MOST_AT_ONCE = 20


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
