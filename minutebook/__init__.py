"""Minutebook's public API, the only one that stays compatible: for steps, readers and workers.

Importing it does not load the rest of Minutebook, so that a user's own `tasks` or `models` never
collide with it.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from celery import Celery

    from minutebook import actions
    from minutebook.client import ApiError, Client
    from minutebook.followed import FollowedOperation, current_operation
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


def follow(
    app: Celery,
    *,
    url: str | None = None,
    token: str | None = None,
    home: str | os.PathLike[str] | None = None,
) -> None:
    """Let the workers of `app` take the operations of tasks that Minutebook sends, and report them.

    Call it where the application is made. A worker asks the server at `url` (default:
    MINUTEBOOK_URL) with `token` (default: MINUTEBOOK_TOKEN, of `minutebook token create --role
    worker --tasks PATTERN`). Without a URL, it asks the server of the same account on this machine,
    by `web.sock` in the home folder `home` (default: SCHED_HOME, else `.minutebook` in the worker's
    directory). Other tasks are not affected.

    While the server is away, a task's message goes back to its queue with a delay that grows up to
    30 seconds, and other tasks go on; an end is repeated for ten minutes.
    """
    from minutebook.celery_worker import connect

    connect(app, url, token, home)


# Loaded when they are first used: steps and readers need pydantic, the client needs httpx. A worker
# that follows has perhaps neither, and a command reports nothing.
_PLACES = {
    **dict.fromkeys(("FollowedOperation", "current_operation"), "followed"),
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
