"""The pace of an operation's messages, and the ceiling of its small app."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event

from minutebook.steps import StepFailed
from models.errors import Refused
from models.store.tenants import ceilings
from models.store.tenants.ceilings import Ceiling
from runtime.clock import monotonic
from runtime.database import reading
from tasks.step_context import WorkContext

# The delay until a wait notices a stop.
STOP_POLL_S = 0.1
# Messages between two looks at the ceiling: operations at once may exceed it by as many each.
MOST_BETWEEN = 100


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
class MailCeiling:
    """Stops a step whose restricted small app has sent its mails of the last 24 hours."""

    context: WorkContext
    _asked_after: int = field(default=0, init=False)

    def check(self, sent: int) -> None:
        """Raise StepFailed if no more may be sent, after `sent` messages; ask now and then."""
        if sent < self._asked_after:
            return
        app, limits = self.context.small_app, self.context.settings.limits
        try:
            with reading(self.context.engine) as connection:
                some = ceilings.left(connection, app.id, Ceiling.MAILS, limits)
        except Refused as error:
            raise StepFailed(str(error), permanent=False) from None
        self._asked_after = sent + min(some, MOST_BETWEEN)
