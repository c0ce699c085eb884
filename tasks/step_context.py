"""The StepContext of built-in steps, with the database and the settings."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from minutebook.steps import SmallApp, StepContext
from models.operation import AttemptKey
from models.store.operations.heartbeat import RunHistory
from runtime.config import Settings

if TYPE_CHECKING:
    from tasks.progress import Progress

_OF_HISTORY = ("run_number", "last_success_at", "checkpoint")


@dataclass
class WorkContext(StepContext):
    """The StepContext of a running operation; built-in steps use `engine` and `settings`."""

    # Read by `app_source` and `memory_source` when a step first asks for one of them: few steps do.
    small_app: SmallApp = field(init=False)
    run_number: int = field(init=False)
    last_success_at: datetime | None = field(init=False)
    checkpoint: dict[str, Any] = field(init=False)
    app_source: Callable[[], SmallApp]
    memory_source: Callable[[], RunHistory]
    # What fences each write.
    key: AttemptKey
    engine: sa.Engine
    settings: Settings
    is_manual: bool
    reporter: "Progress"
    time_left_source: Callable[[], timedelta]
    should_stop_source: Callable[[], bool]
    # Whether the user of a manual run wants the mail that a step leaves to them; None: the step
    # decides.
    notify: bool | None = None
    # Attempts that the policy allows if this one fails.
    attempts_left: int = 0
    # Modules of steps and readers that this worker could not import, and why.
    failed_modules: Mapping[str, str] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        # What a step has set meanwhile stays. Only what was asked for is kept: an end writes the
        # checkpoint if it is.
        if name == "small_app":
            return vars(self).setdefault(name, self.app_source())
        if name not in _OF_HISTORY:
            raise AttributeError(f"the context of a step has no {name!r}")
        known = self._memory
        values = (known.run_number + 1, known.last_success_at, known.checkpoint)
        return vars(self).setdefault(name, dict(zip(_OF_HISTORY, values, strict=True))[name])

    @cached_property
    def _memory(self) -> RunHistory:
        return self.memory_source()

    @property
    def has_checkpoint(self) -> bool:
        """Whether a step has read or set the checkpoint: else the stored one stays."""
        return "checkpoint" in vars(self)

    def progress(
        self,
        done: int | None = None,
        total: int | None = None,
        message: str | None = None,
        phase: str | None = None,
        *,
        blocking: bool | None = None,
    ) -> None:
        """Report the step's progress; see `StepContext.progress`."""
        self.reporter.report(done, total, message, phase, blocking=blocking)

    def announce(self, run_type: str, rewrites: Iterable[str]) -> None:
        """Report what kind of run it is: those that rewrote the same say when it ends."""
        self.reporter.announce(run_type, rewrites)

    def time_left(self) -> timedelta:
        """Return how long the operation may still run; never negative."""
        return self.time_left_source()

    def should_stop(self) -> bool:
        """Return True if the step should end soon."""
        return self.should_stop_source()
