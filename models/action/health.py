"""The health of an action, in one sentence."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from models.operation import OperationState
from models.values import format_instant


class Trouble(StrEnum):
    """Why an action is unhealthy."""

    SET_ASIDE = "set_aside"
    FAILED = "action_failed"
    MISSED = "action_missed"
    OVERDUE = "action_overdue"
    NEVER_RAN = "never_ran"


@dataclass(frozen=True, slots=True)
class Health:
    """Why an action is unhealthy, None if it is not; and its health in a sentence."""

    trouble: Trouble | None
    sentence: str
    # Since when, if that is known.
    since: datetime | None = None

    @property
    def is_healthy(self) -> bool:
        """Whether it needs no attention."""
        return self.trouble is None


def health_of(known: Mapping[str, Any], alert_after: int) -> Health:
    """Return the health of an action.

    `known` has active, set_aside, updated_at, last_state, last_run_at, last_success_at,
    failures_in_row, troubles_in_row, overdue_since (an instant: the oldest occurrence that did not
    start in time), missed_at (its last occurrence, if it was missed), missed_reason and was_due
    (whether an operation was recorded). A paused action is healthy: the pause is intended.
    """
    if known["set_aside"]:
        return Health(Trouble.SET_ASIDE, f"set aside: {known['set_aside']}", known["updated_at"])
    if not known["active"]:
        return Health(None, "paused")
    found = _trouble(known, alert_after)
    if found is not None:
        return found
    return Health(None, _well(known["last_state"], known["last_success_at"]))


def _well(last_state: str | None, last_success_at: datetime | None) -> str:
    if last_state is None:
        return "has not been due yet"
    if last_state == OperationState.HANDED_OVER:
        return "is sent; no worker reports how it ends"
    return "runs well" if last_success_at is not None else "has not succeeded yet"


def _trouble(known: Mapping[str, Any], alert_after: int) -> Health | None:
    since: datetime | None = known["overdue_since"]
    if since is not None:
        sentence = f"overdue: its occurrence of {format_instant(since)} has not started"
        return Health(Trouble.OVERDUE, sentence, since)
    if known["last_state"] is None:
        was_due = known["was_due"]
        sentence = f"was due and never ran{_because(known)}"
        return Health(Trouble.NEVER_RAN, sentence) if was_due else None
    if known["last_state"] == OperationState.FAILED:
        times = _times(known["failures_in_row"] or 1)
        return Health(Trouble.FAILED, f"failed {times}", known["last_run_at"])
    failures = known["troubles_in_row"] or 0
    if failures >= alert_after:
        sentence = f"failed or partial {_times(failures)}"
        return Health(Trouble.FAILED, sentence, known["last_run_at"])
    missed: datetime | None = known["missed_at"]
    if missed is not None:
        sentence = f"missed: its occurrence of {format_instant(missed)} did not run"
        sentence += _because(known)
        return Health(Trouble.MISSED, sentence, missed)
    return None


def _because(known: Mapping[str, Any]) -> str:
    reason = known["missed_reason"]
    return f": {reason}" if reason else ""


def _times(count: int) -> str:
    return f"{count} times in a row" if count > 1 else "at its last run"
