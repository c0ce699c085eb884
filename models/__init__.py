"""Documents, tables, and every query on them.

The documents are importable from here, and loaded when they are first used. Read without a context,
they know Minutebook's own steps, and no others.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from models.action.document import ScheduledActionModel
    from models.action.event_rules import AfterEventModel, OnEventModel
    from models.action.recipients import RecipientFilterModel
    from models.action.steps import OperationModel
    from models.action.when import WhenModel

__all__ = [
    "AfterEventModel",
    "OnEventModel",
    "OperationModel",
    "RecipientFilterModel",
    "ScheduledActionModel",
    "WhenModel",
]

_PLACES = {
    "AfterEventModel": "models.action.event_rules",
    "OnEventModel": "models.action.event_rules",
    "OperationModel": "models.action.steps",
    "RecipientFilterModel": "models.action.recipients",
    "ScheduledActionModel": "models.action.document",
    "WhenModel": "models.action.when",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'models' has no attribute {name!r}")
    from runtime.plug_ins import declare_steps

    declare_steps()
    return getattr(import_module(_PLACES[name]), name)
