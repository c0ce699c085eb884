"""Minutebook's public API, the only one that stays compatible: for steps, readers and workers.

Importing it does not load the rest of Minutebook, so that a user's own `tasks` or `models` never
collide with it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from minutebook.followed import FollowedOperation, current_operation
from minutebook.following import follow

if TYPE_CHECKING:
    from minutebook import actions
    from minutebook.client import ApiError, Client
    from minutebook.readers import reader, registered_readers
    from minutebook.steps import (
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
    "ApiError",
    "Client",
    "FollowedOperation",
    "Recipient",
    "SmallApp",
    "StepContext",
    "StepFailed",
    "StepOutcome",
    "StepResult",
    "actions",
    "current_operation",
    "follow",
    "reader",
    "registered_readers",
    "registered_steps",
    "step",
]


# Loaded when they are first used: steps and readers need pydantic, the client needs httpx. A worker
# that follows has perhaps neither.
_PLACES = {
    **dict.fromkeys(("ApiError", "Client"), "client"),
    **dict.fromkeys(("reader", "registered_readers"), "readers"),
    **dict.fromkeys(("Recipient", "SmallApp", "StepContext", "StepFailed"), "steps"),
    **dict.fromkeys(("StepOutcome", "StepResult", "registered_steps", "step"), "steps"),
}


def __getattr__(name: str) -> Any:
    if name == "actions":
        return import_module("minutebook.actions")
    if name not in _PLACES:
        raise AttributeError(f"module 'minutebook' has no attribute {name!r}")
    return getattr(import_module(f"minutebook.{_PLACES[name]}"), name)
