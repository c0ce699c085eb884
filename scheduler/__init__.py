"""Decide what is due, record it and send it.

The decisions about last occurrences and ids are importable from here, and loaded when they are
first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from models.fingerprint import str_to_uuid
    from scheduler.occurrence import (
        get_cron_last_occurrence,
        get_scheduled_action_last_occurrence,
    )

__all__ = ["get_cron_last_occurrence", "get_scheduled_action_last_occurrence", "str_to_uuid"]

_PLACES = {
    "get_cron_last_occurrence": "scheduler.occurrence",
    "get_scheduled_action_last_occurrence": "scheduler.occurrence",
    "str_to_uuid": "models.fingerprint",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'scheduler' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
