"""The context in which a document is read."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pydantic import ValidationInfo

from minutebook import steps as declared
from minutebook.steps import Steps, StepSpec
from models.celery_task import NO_TASKS, CeleryRules
from models.trust import TRUSTED, Trust

DEFAULT_TICK = timedelta(minutes=1)
# The shortest tick a daemon may have.
LEAST_TICK = timedelta(seconds=1)


class KnownSteps(dict[str, StepSpec]):
    """The steps of a process by name.

    `failures` holds one sentence for each module that could not be loaded. `lacking` names the
    extras that no worker has: an action that needs one is refused.
    """

    def __init__(
        self, specs: Steps, failures: Sequence[str] = (), lacking: Collection[str] = ()
    ) -> None:
        super().__init__(specs)
        self.failures = tuple(failures)
        self.lacking = frozenset(lacking)


def why_unknown(steps: Steps) -> str:
    """Return the text to add to "is not known": the modules that failed to load."""
    failures = steps.failures if isinstance(steps, KnownSteps) else ()
    return "".join(f"; {failure}" for failure in failures)


def lacking(steps: Steps) -> frozenset[str]:
    """Return the extras that no worker has."""
    return steps.lacking if isinstance(steps, KnownSteps) else frozenset()


# The calendars of a small app by name, each a list of dates as `except` has them.
Calendars = Mapping[str, Sequence[object]]


@dataclass(frozen=True, slots=True)
class Reading:
    """How one document is read: pydantic's validation context.

    `default_zone` is the small app's; `now` is aware UTC, without it no due date is too late;
    `steps` are all that are known, by name. For an existing action, `created_at` is its creation.
    `kept_due_dates` may be past: those of its stored document, or None for any. `tick` is the
    shortest interval that the daemon can keep. `tolerant` ignores unknown keys and steps.
    """

    default_zone: str = "UTC"
    now: datetime | None = None
    steps: Steps = field(default_factory=dict)
    created_at: datetime | None = None
    kept_due_dates: frozenset[datetime] | None = frozenset()
    tick: timedelta = LEAST_TICK
    tolerant: bool = False
    calendars: Calendars = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ParseContext(Reading):
    """How an action is read that is saved: with what is allowed to it.

    `celery` says which tasks of the user's Celery application may be sent; None leaves that check
    to the sender.
    """

    default_zone: str
    now: datetime
    steps: Steps
    tick: timedelta = DEFAULT_TICK
    # Whether the existing action is paused: it stays so unless its document says `active`.
    is_paused: bool = False
    celery: CeleryRules | None = NO_TASKS
    # How far the small app is trusted; checked again at run.
    trust: Trust = TRUSTED
    # Programs that the settings allow; None leaves that check to the worker.
    commands: tuple[str, ...] | None = ()
    # Channels that the settings name; None leaves that check to the worker.
    channels: tuple[str, ...] | None = ()


# Without a context, a document may name each of our own steps that this process has declared.
PLAIN = Reading(steps=declared._built_in)


def reading_of(info: ValidationInfo) -> Reading:
    """Return the reading in `info`, or a plain strict one."""
    return info.context if isinstance(info.context, Reading) else PLAIN
