"""Minutehand's public API, the only one that stays compatible: for steps, readers and workers.

Importing it does not load the rest of Minutehand, so that a user's own `tasks` or `models` never
collide with it.
"""

from minutehand.followed import FollowedOperation, current_operation
from minutehand.following import follow
from minutehand.production import Production, open_production
from minutehand.readers import reader, registered_readers
from minutehand.steps import (
    Recipient,
    SmallApp,
    StepContext,
    StepFailed,
    StepOutcome,
    StepResult,
    registered_steps,
    step,
)

__all__ = [
    "FollowedOperation",
    "Production",
    "Recipient",
    "SmallApp",
    "StepContext",
    "StepFailed",
    "StepOutcome",
    "StepResult",
    "current_operation",
    "follow",
    "open_production",
    "reader",
    "registered_readers",
    "registered_steps",
    "step",
]
