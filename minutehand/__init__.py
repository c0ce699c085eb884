"""The public face of Minutehand: what a step of one's own imports, and the only promise we keep.

Light to import: the rest of Minutehand is not loaded, so that a user's own `tasks` or `models`
never collide with it.
"""

from minutehand.production import Production, open_production
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
    "Production",
    "Recipient",
    "SmallApp",
    "StepContext",
    "StepFailed",
    "StepOutcome",
    "StepResult",
    "open_production",
    "registered_steps",
    "step",
]
