"""The health of an action, in one sentence."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from models.notices import FindingKind
from models.operation import OperationState
from models.values import format_instant

NOTHING_TO_COME = "no occurrence is to come; give it another date or rule"


REMEDIES: Mapping[str, str] = {
    FindingKind.QUARANTINED: "correct its document and apply it again",
    FindingKind.FAILED: "see the error of its last run, then retry it",
    FindingKind.FAILING: "see the error of its last run, then retry it",
    FindingKind.MISSED: "run it now, or backfill what was missed",
    FindingKind.OVERDUE: "see what its run waits for",
    FindingKind.NEVER_RAN: "see why: `minutebook action explain`",
}


@dataclass(frozen=True, slots=True)
class Health:
    """Why an action is unhealthy, None if it is not; and its health in a sentence."""

    trouble: FindingKind | None
    sentence: str
    # Since when, if that is known.
    since: datetime | None = None

    @property
    def is_healthy(self) -> bool:
        """Whether it needs no attention."""
        return self.trouble is None


def health_of(known: Mapping[str, Any], alert_after: int) -> Health:
    """Return the health of an action.

    `known` has active, quarantined, updated_at, last_state, last_run_at, last_success_at,
    failures_in_row, bad_runs_in_a_row, overdue_since (the oldest occurrence that waits, once a tick
    found it overdue), overdue_text (what was found of it), missed_at (its last occurrence, if it
    was missed), trouble_reason (why that one did not go well). For one that never ran:
    first_run (the state of its newest operation, or `retry` after a failed attempt) and is_over
    (whether it will not be due again). A paused action is healthy: the pause is intended.
    """
    if known["quarantined"]:
        return Health(
            FindingKind.QUARANTINED, f"quarantined: {known['quarantined']}", known["updated_at"]
        )
    if not known["active"]:
        return Health(None, "paused")
    found = _trouble(known, alert_after)
    if found is not None:
        return found
    return Health(None, _well(known))


RETRY = "retry"
_FIRST_RUNS: Mapping[str, str] = {
    RETRY: "failed at its first attempt, and is tried again",
    OperationState.RUNNING.value: "runs for the first time",
    OperationState.PENDING.value: "is due for the first time",
    OperationState.QUEUED.value: "is due for the first time",
}
_LAST_RUNS: Mapping[str, str] = {
    OperationState.SUCCESS.value: "runs well",
    OperationState.PARTIAL.value: "succeeded in part at its last run",
    OperationState.CANCELLED.value: "was cancelled at its last run",
}


def _well(known: Mapping[str, Any]) -> str:
    last_state: str | None = known["last_state"]
    if known["first_run"] is None and last_state is None:
        return "not yet due"
    if last_state is None:
        return _FIRST_RUNS.get(known["first_run"], "has not run yet")
    if last_state == OperationState.HANDED_OVER:
        return "is sent; no worker reports how it ends"
    if known["last_success_at"] is None:
        return "has not succeeded yet"
    return _LAST_RUNS.get(last_state, "has not succeeded lately")


def _trouble(known: Mapping[str, Any], alert_after: int) -> Health | None:
    since: datetime | None = known["overdue_since"]
    if since is not None:
        sentence = f"overdue: its occurrence of {format_instant(since)} has not started"
        _, _, why = (known.get("overdue_text") or "").partition(": overdue: ")
        sentence += f": {why}" if why else ""
        return Health(FindingKind.OVERDUE, sentence, since)
    if known["last_state"] is None:
        return _never_ran(known)
    if known["last_state"] == OperationState.FAILED:
        times = in_a_row(known["failures_in_row"] or 1)
        return Health(FindingKind.FAILED, f"failed {times}", known["last_run_at"])
    failures = known["bad_runs_in_a_row"] or 0
    if failures >= alert_after:
        sentence = f"failed or partial {in_a_row(failures)}"
        return Health(FindingKind.FAILED, sentence, known["last_run_at"])
    missed: datetime | None = known["missed_at"]
    if missed is not None:
        sentence = f"missed: its occurrence of {format_instant(missed)} did not run"
        sentence += _because(known)
        return Health(FindingKind.MISSED, sentence, missed)
    return None


def _never_ran(known: Mapping[str, Any]) -> Health | None:
    if known["first_run"] in _FIRST_RUNS:
        return None
    if known["missed_at"] is not None:
        return Health(FindingKind.NEVER_RAN, f"was due and never ran{_because(known)}")
    if known["is_over"] and known["first_run"] != OperationState.CANCELLED:
        return Health(FindingKind.NEVER_RAN, f"never ran, and {NOTHING_TO_COME}")
    return None


def _because(known: Mapping[str, Any]) -> str:
    reason = known["trouble_reason"]
    return f": {reason}" if reason else ""


def in_a_row(count: int) -> str:
    """Return how often something failed lately."""
    return f"{count} times in a row" if count > 1 else "at its last run"
