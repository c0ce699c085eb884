"""Whether an action is well, and why not: in one sentence."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from models.operation import OperationState
from models.values import format_instant


@dataclass(frozen=True, slots=True)
class Health:
    """Whether an action is well, and the sentence that says why."""

    is_healthy: bool
    sentence: str


def health_of(known: Mapping[str, Any], alert_after: int) -> Health:
    """Return how an action stands by what is known of it.

    `known` has active, set_aside, last_state, failures_in_row, troubles_in_row, overdue_since (an
    instant: the oldest occurrence that nobody started in time) and was_due (whether anything was
    recorded). A paused action is healthy: somebody wants it so.
    """
    if known["set_aside"]:
        return Health(False, f"set aside: {known['set_aside']}")
    if not known["active"]:
        return Health(True, "paused")
    fault = _fault(known, alert_after)
    if fault is not None:
        return Health(False, fault)
    ran = known["last_state"] is not None
    return Health(True, "runs well" if ran else "has not been due yet")


def _fault(known: Mapping[str, Any], alert_after: int) -> str | None:
    since: datetime | None = known["overdue_since"]
    if since is not None:
        return f"overdue: nothing has started its occurrence of {format_instant(since)}"
    if known["last_state"] is None:
        return "was due and never ran" if known["was_due"] else None
    if known["last_state"] == OperationState.FAILED:
        return f"failed {_times(known['failures_in_row'] or 1)}"
    troubles = known["troubles_in_row"] or 0
    if troubles >= alert_after:
        return f"failed or partial {_times(troubles)}"
    return None


def _times(count: int) -> str:
    return f"{count} times in a row" if count > 1 else "at its last run"
