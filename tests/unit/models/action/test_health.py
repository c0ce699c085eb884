"""The health of an action, and the reason."""

from datetime import UTC, datetime
from typing import Any

import pytest

from models.action.health import Health, health_of
from models.notices import FindingKind

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
WELL = {
    "active": True,
    "quarantined": None,
    "updated_at": NOON,
    "last_state": "success",
    "last_run_at": NOON,
    "last_success_at": NOON,
    "failures_in_row": 0,
    "bad_runs_in_a_row": 0,
    "overdue_since": None,
    "missed_at": None,
    "trouble_reason": None,
    "first_run": None,
    "is_over": False,
}
PARTIAL = {"last_state": "partial"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Health(None, "runs well")),
        ({"last_state": None}, Health(None, "not yet due")),
        (
            {"last_state": None, "first_run": "skipped"},
            Health(None, "has not run yet"),
        ),
        (
            {"last_state": None, "is_over": True},
            Health(
                FindingKind.NEVER_RAN,
                "never ran, and no occurrence is to come; give it another date or rule",
            ),
        ),
        (
            {"last_state": None, "is_over": True, "first_run": "queued"},
            Health(None, "is due for the first time"),
        ),
        (
            {"last_state": None, "is_over": True, "first_run": "cancelled"},
            Health(None, "has not run yet"),
        ),
        (
            {"last_state": None, "first_run": "retry"},
            Health(None, "failed at its first attempt, and is tried again"),
        ),
        (
            {"last_state": None, "first_run": "running"},
            Health(None, "runs for the first time"),
        ),
        ({"quarantined": "broken"}, Health(FindingKind.QUARANTINED, "quarantined: broken", NOON)),
        ({"active": False, "last_state": "failed"}, Health(None, "paused")),
        (
            {"last_state": "failed", "failures_in_row": 1, "bad_runs_in_a_row": 1},
            Health(FindingKind.FAILED, "failed at its last run", NOON),
        ),
        (
            {"last_state": "failed", "failures_in_row": 4, "bad_runs_in_a_row": 4},
            Health(FindingKind.FAILED, "failed 4 times in a row", NOON),
        ),
        ({**PARTIAL, "bad_runs_in_a_row": 2}, Health(None, "succeeded in part at its last run")),
        ({"last_state": "cancelled"}, Health(None, "was cancelled at its last run")),
        (
            {**PARTIAL, "bad_runs_in_a_row": 3},
            Health(FindingKind.FAILED, "failed or partial 3 times in a row", NOON),
        ),
        (
            {"overdue_since": NOON},
            Health(
                FindingKind.OVERDUE,
                "overdue: its occurrence of 2027-01-04T12:00:00Z has not started",
                NOON,
            ),
        ),
        (
            {"missed_at": NOON},
            Health(
                FindingKind.MISSED,
                "missed: its occurrence of 2027-01-04T12:00:00Z did not run",
                NOON,
            ),
        ),
        (
            {"missed_at": NOON, "trouble_reason": "no daemon ticked"},
            Health(
                FindingKind.MISSED,
                "missed: its occurrence of 2027-01-04T12:00:00Z did not run: no daemon ticked",
                NOON,
            ),
        ),
        (
            {"last_state": None, "missed_at": NOON, "trouble_reason": "no daemon ticked"},
            Health(FindingKind.NEVER_RAN, "was due and never ran: no daemon ticked"),
        ),
        ({"missed_at": NOON, "active": False}, Health(None, "paused")),
        ({**PARTIAL, "last_success_at": None}, Health(None, "has not succeeded yet")),
        (
            {"last_state": "handed_over", "last_success_at": None},
            Health(None, "is sent; no worker reports how it ends"),
        ),
    ],
)
def test_health_has_a_reason(changes: dict[str, Any], expected: Health) -> None:
    assert health_of(WELL | changes, 3) == expected
