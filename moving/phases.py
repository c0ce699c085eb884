"""The first instant of an interval: what the other scheduler would do next."""

from datetime import UTC, datetime, timedelta
from typing import Any

from models.values import format_instant
from models.values.delays import rounded_up

# How late a scheduler that runs may be recorded: beat writes what it has done every three minutes.
RECORDED_WITHIN = timedelta(minutes=5)
UNKNOWN = "its last run is unknown, so its first one may be up to one interval later"

Interval = tuple[dict[str, Any], tuple[str, ...]]


def continued(rule: dict[str, Any], due_at: datetime | None, as_of: datetime) -> Interval:
    """Return an interval that begins at `due_at`, and what differs.

    `due_at` is when the other scheduler would run it next, as it was known at `as_of`.
    """
    if due_at is None:
        return rule, (UNKNOWN,)
    shown = format_instant(rounded_up(due_at))
    is_overdue = due_at + RECORDED_WITHIN < as_of
    late = f"it was due at {shown}: its scheduler would run it at its start, the action would not"
    return {**rule, "starting_at": shown}, (late,) if is_overdue else ()


def instant_or_none(text: object) -> datetime | None:
    """Return an instant in UTC; None for a text that is none. Without an offset it is UTC."""
    try:
        at = text if isinstance(text, datetime) else datetime.fromisoformat(str(text))
        return (at.replace(tzinfo=UTC) if at.tzinfo is None else at).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
