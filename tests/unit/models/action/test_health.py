from datetime import UTC, datetime
from typing import Any

import pytest

from models.action.health import health_of
from tests.tables import table

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


@pytest.mark.parametrize(
    ("changes", "trouble", "sentence", "since"), table(__file__, "health_has_a_reason")
)
def test_health_has_a_reason(
    changes: dict[str, Any], trouble: str | None, sentence: str, since: str | None
) -> None:
    """In the table, `noon` stands for that instant."""
    row = WELL | {key: NOON if value == "noon" else value for key, value in changes.items()}

    found = health_of(row, 3)

    assert (found.trouble, found.sentence, found.since) == (trouble, sentence, since and NOON)
