"""Minutehand's public API, the only one that stays compatible: for steps, readers and workers.

Importing it does not load the rest of Minutehand, so that a user's own `tasks` or `models` never
collide with it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from minutehand.client import ApiError, AsyncClient, Client

__all__ = [
    "ApiError",
    "AsyncClient",
    "Client",
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


def __getattr__(name: str) -> Any:
    """Load the client on demand: it needs httpx, which steps and workers do not."""
    if name in {"ApiError", "AsyncClient", "Client"}:
        return getattr(import_module("minutehand.client"), name)
    raise AttributeError(f"module 'minutehand' has no attribute {name!r}")
