"""The time that the refreshes of a small app may take a day."""

from datetime import timedelta

from minutebook.steps import StepFailed
from models.limits import imported_enough
from models.store import usage
from models.store.usage import Used
from runtime.clock import monotonic
from runtime.database import reading
from tasks.step_context import WorkContext

MINUTE_MS = timedelta(minutes=1) // timedelta(milliseconds=1)
# How much may be uncounted when a worker is lost.
NOTED_MS = 10_000


class Budget:
    """What is left of today's minutes; 0 minutes are no limit.

    Refreshes that run at once each see what the others have noted so far.
    """

    def __init__(self, context: WorkContext) -> None:
        self._context = context
        self._minutes = context.settings.limits.import_minutes
        self._noted_at = monotonic()
        with reading(context.engine) as connection:
            self._spent_ms = usage.spent(connection, context.small_app.id, Used.IMPORT_MS)

    def check(self) -> None:
        """Count the time until now; raise StepFailed if nothing is left."""
        if self._pending_ms >= NOTED_MS:
            self.note()
        if self._minutes and self._spent_ms + self._pending_ms >= self._minutes * MINUTE_MS:
            raise StepFailed(imported_enough(self._minutes), permanent=True)

    def note(self) -> None:
        """Store the time until now."""
        pending, now = self._pending_ms, monotonic()
        app = self._context.small_app.id
        with self._context.engine.begin() as connection:
            usage.spend(connection, app, Used.IMPORT_MS, pending)
            self._spent_ms = usage.spent(connection, app, Used.IMPORT_MS)
        self._noted_at = now

    @property
    def _pending_ms(self) -> int:
        return int((monotonic() - self._noted_at) * 1000)
