"""A valid, minimal action whose keys a test changes, and how and when it is read."""

from datetime import UTC, datetime
from typing import Any

from models.action.document import ParseContext, ScheduledActionModel, parse_action, plan_of
from models.action.plan import Plan
from tests.factories import STEPS

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def action(**changes: Any) -> dict[str, Any]:
    """Return a valid, minimal action with `changes`; a key set to `...` is removed."""
    document = {"name": "a", "operations": {"maintenance": True}, "when": {"every": "PT1H"}}
    return {key: value for key, value in {**document, **changes}.items() if value is not ...}


def parse(document: object, **known: Any) -> ScheduledActionModel:
    """Return the action that a document says now, in Paris, with Minutebook's own steps."""
    context = {"default_zone": "Europe/Paris", "now": NOW, "steps": STEPS, **known}
    return parse_action(document, ParseContext(**context))


def planned(**changes: Any) -> Plan:
    """Return the plan of a minimal action with `changes`."""
    return plan_of(parse(action(**changes)))
