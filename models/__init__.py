"""Documents, tables, and every query on them.

The names that the glossary lists are importable from here, from `tasks` and from `scheduler`, and
loaded when they are first used. Documents that are read without a context know Minutebook's own
steps, and no others.
"""

from importlib import import_module
from typing import Any

_PLACES = {
    "AfterEventModel": "models.action.event_rules",
    "OnEventModel": "models.action.event_rules",
    "OperationModel": "models.action.steps",
    "RecipientFilterModel": "models.action.recipients",
    "ScheduledActionModel": "models.action.document",
    "WhenModel": "models.action.when",
    "execute_scheduled_action": "tasks.execute",
    "execute_scheduled_action_quick": "tasks.execute",
    "get_cron_last_occurrence": "scheduler.occurrence",
    "get_operation_state": "models.store.operations",
    "get_scheduled_action_last_occurrence": "scheduler.occurrence",
    "metatask_schedule": "tasks.backfill",
    "str_to_uuid": "models.fingerprint",
}
__all__ = list(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"this package has no attribute {name!r}")
    if name.endswith("Model"):
        from runtime.plug_ins import declare_steps

        declare_steps()
    return getattr(import_module(_PLACES[name]), name)
