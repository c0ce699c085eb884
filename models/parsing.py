"""What a document is read with: the small app's zone, the clock's answer, the known steps."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pydantic import ValidationInfo

from models.celery_task import NO_TASKS, CeleryRules
from models.step_spec import StepSpec

DEFAULT_TICK = timedelta(minutes=1)
# What a daemon may be set to; an edit by plain SQL is read without its settings.
LEAST_TICK = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class ParseContext:
    """What saving an action needs to know besides its document.

    `default_zone` is the small app's; `now` is aware UTC; `steps` are the registered user steps
    (the built-in ones are always known). When an existing action is edited, `created_at` is when
    it was made and `previous` the stored document: a due date that it had already is not refused
    for being past. `tick` is the shortest interval that the daemon can keep. `celery` says which
    tasks of the user's own may be sent; None leaves that to whoever sends them.
    """

    default_zone: str
    now: datetime
    steps: Mapping[str, StepSpec] = field(default_factory=dict)
    created_at: datetime | None = None
    previous: Mapping[str, object] | None = None
    tick: timedelta = DEFAULT_TICK
    celery: CeleryRules | None = NO_TASKS


@dataclass(frozen=True, slots=True)
class Reading:
    """How one document is read; handed through pydantic as its validation context.

    `tolerant` passes over unknown keys and steps; without `now` no due date is too late; an
    interval without `starting_at` begins at `created_at`, and is refused where that is None.
    """

    default_zone: str = "UTC"
    steps: Mapping[str, StepSpec] = field(default_factory=dict)
    created_at: datetime | None = None
    now: datetime | None = None
    kept_due_dates: frozenset[datetime] = frozenset()
    tick: timedelta = timedelta(seconds=1)
    tolerant: bool = False


PLAIN = Reading()


def reading_of(info: ValidationInfo) -> Reading:
    """Return the reading that `info` carries, or a plain strict one."""
    return info.context if isinstance(info.context, Reading) else PLAIN
