"""docs/reference/operation.md: every state, field and reason of an operation."""

import re
from pathlib import Path
from uuid import UUID

import pytest

from models.fingerprint import str_to_uuid
from models.operation import OUTCOMES, OperationState, StepState
from models.store.operations.put_back import CANCELLED, STOPPED_IN_TIME, TIME_LIMIT
from models.store.operations.start_checks import EXPIRED
from models.tables import operations
from scheduler.decision import OVERTAKEN, TOO_LATE
from tasks.lease import GIVEN_BACK

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "operation.md"
TEXT = PAGE.read_text(encoding="utf-8")
# Shown in no view.
INTERNAL = {
    "small_app_id", "task", "overlap_key", "first_started_at", "backfill_id", "secret", "rewrites",
}  # fmt: skip


def _first_cells(heading: str) -> str:
    section = re.split(rf"^## {heading}$", TEXT, flags=re.M)[1].split("\n## ")[0]
    return "\n".join(re.findall(r"^\| (`.+?) \|", section, re.M))


def test_the_page_has_each_state_and_no_other() -> None:
    named = set(re.findall(r"`(\w+)`", _first_cells("States")))

    assert named == set(OperationState) > OUTCOMES


@pytest.mark.parametrize("column", sorted({one.name for one in operations.columns} - INTERNAL))
def test_each_field_has_a_row(column: str) -> None:
    assert f"`{column}`" in _first_cells("Fields")


@pytest.mark.parametrize(
    "reason",
    [
        TOO_LATE,
        f"{OVERTAKEN} by …",
        EXPIRED,
        *(end.reason for end in (GIVEN_BACK, CANCELLED, STOPPED_IN_TIME, TIME_LIMIT)),
    ],
)
def test_each_fixed_reason_has_a_row(reason: str) -> None:
    assert f"`{reason}`" in _first_cells("Reasons")


def test_each_state_of_a_step_is_named() -> None:
    assert all(f"`{state}`" in TEXT for state in StepState)


def test_the_example_of_an_id_is_true() -> None:
    found = re.search(r"`([0-9a-f-]{36} \| [^`]+Z)` has the id `([0-9a-f-]{36})`", TEXT)

    assert found is not None
    assert str_to_uuid(found[1]) == UUID(found[2])
