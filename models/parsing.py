"""The context in which a document is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pydantic import ValidationInfo

from minutehand.steps import Steps, StepSpec
from models.celery_task import NO_TASKS, CeleryRules

DEFAULT_TICK = timedelta(minutes=1)
# The shortest tick a daemon may have; an edit by plain SQL is read without its settings.
LEAST_TICK = timedelta(seconds=5)


class KnownSteps(dict[str, StepSpec]):
    """The steps of a process by name.

    `failures` holds one sentence for each module that could not be loaded.
    """

    def __init__(self, specs: Steps, failures: Sequence[str] = ()) -> None:
        super().__init__(specs)
        self.failures = tuple(failures)


def why_unknown(steps: Steps) -> str:
    """Return the text to add to "is not known": the modules that failed to load."""
    failures = steps.failures if isinstance(steps, KnownSteps) else ()
    return "".join(f"; {failure}" for failure in failures)


@dataclass(frozen=True, slots=True)
class ParseContext:
    """The context in which an action is saved.

    `default_zone` is the small app's; `now` is aware UTC; `steps` are all that are known, by name.
    For an existing action, `created_at` is its creation and `previous` its stored document: due
    dates in it may be past. `tick` is the shortest interval that the daemon can keep. `celery` says
    which tasks of the user's Celery application may be sent; None leaves that check to the sender.
    """

    default_zone: str
    now: datetime
    steps: Steps
    created_at: datetime | None = None
    previous: Mapping[str, object] | None = None
    tick: timedelta = DEFAULT_TICK
    celery: CeleryRules | None = NO_TASKS


@dataclass(frozen=True, slots=True)
class Reading:
    """How one document is read: pydantic's validation context.

    `tolerant` ignores unknown keys and steps. Without `now` no due date is too late. An interval
    without `starting_at` begins at `created_at`, and is refused if that is None.
    """

    default_zone: str = "UTC"
    steps: Steps = field(default_factory=dict)
    created_at: datetime | None = None
    now: datetime | None = None
    kept_due_dates: frozenset[datetime] = frozenset()
    tick: timedelta = timedelta(seconds=1)
    tolerant: bool = False


PLAIN = Reading()


def reading_of(info: ValidationInfo) -> Reading:
    """Return the reading in `info`, or a plain strict one."""
    return info.context if isinstance(info.context, Reading) else PLAIN
