"""The health of an action, in one sentence."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from models.operation import OperationState
from models.values import format_instant


@dataclass(frozen=True, slots=True)
class Health:
    """Whether an action is healthy, and the reason."""

    is_healthy: bool
    sentence: str


def health_of(known: Mapping[str, Any], alert_after: int) -> Health:
    """Return the health of an action.

    `known` has active, set_aside, last_state, failures_in_row, troubles_in_row, overdue_since (an
    instant: the oldest occurrence that did not start in time), missed_at (its last occurrence, if
    it was missed) and was_due (whether an operation was recorded). A paused action is healthy: the
    pause is intended.
    """
    if known["set_aside"]:
        return Health(False, f"set aside: {known['set_aside']}")
    if not known["active"]:
        return Health(True, "paused")
    failure = _failure(known, alert_after)
    if failure is not None:
        return Health(False, failure)
    ran = known["last_state"] is not None
    return Health(True, "runs well" if ran else "has not been due yet")


def _failure(known: Mapping[str, Any], alert_after: int) -> str | None:
    since: datetime | None = known["overdue_since"]
    if since is not None:
        return f"overdue: its occurrence of {format_instant(since)} has not started"
    if known["last_state"] is None:
        return "was due and never ran" if known["was_due"] else None
    if known["last_state"] == OperationState.FAILED:
        return f"failed {_times(known['failures_in_row'] or 1)}"
    failures = known["troubles_in_row"] or 0
    if failures >= alert_after:
        return f"failed or partial {_times(failures)}"
    missed: datetime | None = known["missed_at"]
    if missed is not None:
        return f"missed: its occurrence of {format_instant(missed)} did not run"
    return None


def _times(count: int) -> str:
    return f"{count} times in a row" if count > 1 else "at its last run"
