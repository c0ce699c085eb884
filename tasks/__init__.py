"""What Minutebook's Celery workers run: operations, backfills and notices.

The tasks, and the state of an operation, are importable from here, and loaded when they are first
used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from models.store.operations import get_operation_state
    from tasks.backfill import metatask_schedule
    from tasks.execute import execute_scheduled_action, execute_scheduled_action_quick

__all__ = [
    "execute_scheduled_action",
    "execute_scheduled_action_quick",
    "get_operation_state",
    "metatask_schedule",
]

_PLACES = {
    "execute_scheduled_action": "tasks.execute",
    "execute_scheduled_action_quick": "tasks.execute",
    "get_operation_state": "models.store.operations",
    "metatask_schedule": "tasks.backfill",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'tasks' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
