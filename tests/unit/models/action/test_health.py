"""The health of an action, and the reason."""

from datetime import UTC, datetime
from typing import Any

import pytest

from models.action.health import Health, health_of

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
WELL = {
    "active": True,
    "set_aside": None,
    "last_state": "success",
    "failures_in_row": 0,
    "troubles_in_row": 0,
    "overdue_since": None,
    "missed_at": None,
    "was_due": True,
}
PARTIAL = {"last_state": "partial"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Health(True, "runs well")),
        ({"last_state": None, "was_due": False}, Health(True, "has not been due yet")),
        ({"last_state": None}, Health(False, "was due and never ran")),
        ({"set_aside": "broken"}, Health(False, "set aside: broken")),
        ({"active": False, "last_state": "failed"}, Health(True, "paused")),
        (
            {"last_state": "failed", "failures_in_row": 1, "troubles_in_row": 1},
            Health(False, "failed at its last run"),
        ),
        (
            {"last_state": "failed", "failures_in_row": 4, "troubles_in_row": 4},
            Health(False, "failed 4 times in a row"),
        ),
        ({**PARTIAL, "troubles_in_row": 2}, Health(True, "runs well")),
        (
            {**PARTIAL, "troubles_in_row": 3},
            Health(False, "failed or partial 3 times in a row"),
        ),
        (
            {"overdue_since": NOON},
            Health(False, "overdue: its occurrence of 2027-01-04T12:00:00Z has not started"),
        ),
        (
            {"missed_at": NOON},
            Health(False, "missed: its occurrence of 2027-01-04T12:00:00Z did not run"),
        ),
        ({"missed_at": NOON, "active": False}, Health(True, "paused")),
    ],
)
def test_health_has_a_reason(changes: dict[str, Any], expected: Health) -> None:
    assert health_of(WELL | changes, 3) == expected
