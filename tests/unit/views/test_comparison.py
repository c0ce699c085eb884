"""How a run differs from the last success of its action."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from views.operations.comparison import MOST_DIFFERENCES, compared
from views.operations.sent import SentTask

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


def row(seconds: float | None = 10, **known: Any) -> dict[str, Any]:
    plain = {
        "id": UUID(int=1),
        "occurrence_at": NOON,
        "started_at": NOON,
        "finished_at": None if seconds is None else NOON + timedelta(seconds=seconds),
        "revision": 3,
        "queue": "heavy",
        "worker": "heavy@a",
        "processed": None,
        "steps": None,
    }
    return {**plain, **known}


def refreshed(**details: Any) -> list[dict[str, Any]]:
    return [{"name": "refresh", "started_at": "2027-01-04T12:00:00+00:00", "details": details}]


def told(this: dict[str, Any], last: dict[str, Any], **tasks: Any) -> list[tuple[str, Any, Any]]:
    found = compared(this, last, {int(key[1:]): one for key, one in tasks.items()})
    return [(one.what, one.this, one.last_success) for one in found.differences]


def test_two_runs_that_are_alike_differ_in_nothing_but_how_long_they_took() -> None:
    found = compared(row(30), row(10, id=UUID(int=2)), {})

    assert (found.duration_s, found.last_success_duration_s) == (30, 10)
    assert found.is_much_longer
    assert found.differences == ()


@pytest.mark.parametrize(("seconds", "is_longer"), [(20, False), (20.1, True), (None, False)])
def test_longer_than_twice_is_much_longer(seconds: float | None, is_longer: bool) -> None:
    assert compared(row(seconds), row(10), {}).is_much_longer is is_longer


def test_without_a_success_there_is_nothing_to_compare_with() -> None:
    found = compared(row(), None, {})

    assert (found.last_success_id, found.differences, found.is_much_longer) == (None, (), False)


def test_counts_that_both_have_are_compared() -> None:
    this = refreshed(rows={"orders": 311, "stock": 88}, run_type="complete", failed=1)
    that = refreshed(rows={"orders": 12_044, "stock": 88}, run_type="cached", took=1.5)

    assert told(row(steps=this), row(steps=that)) == [("steps.refresh.rows.orders", 311, 12_044)]


def test_the_count_of_the_last_step_is_compared_with_that_of_the_same_step() -> None:
    here, there = refreshed(), [{**refreshed()[0], "name": "publish"}]

    assert told(row(steps=here, processed=3), row(steps=here, processed=9)) == [
        ("processed.refresh", 3, 9)
    ]
    assert told(row(steps=here, processed=3), row(steps=there, processed=9)) == []


def test_a_run_elsewhere_and_of_another_revision_says_so() -> None:
    this, last = row(revision=4, queue="quick", worker="quick@b"), row()

    assert told(this, last) == [
        ("revision", 4, 3),
        ("queue", "quick", "heavy"),
        ("worker", "quick@b", "heavy@a"),
    ]


def test_another_process_of_the_same_worker_is_no_difference() -> None:
    assert told(row(worker="heavy@a:17:19"), row(worker="heavy@a:17:23")) == []
    assert told(row(worker="heavy@b:17"), row(worker=None)) == []


def test_arguments_that_one_revision_has_alone_are_null_in_the_other() -> None:
    sent = SentTask(name="shop.bill", args=[1], kwargs={"limit": 5}, application=None)
    before = SentTask(name="shop.bill", args=[2], kwargs={"dry": True}, application=None)

    assert told(row(revision=4), row(), r4=sent, r3=before) == [
        ("args", [1], [2]),
        ("kwargs.dry", None, True),
        ("kwargs.limit", 5, None),
        ("revision", 4, 3),
    ]


def test_a_broken_row_is_compared_as_far_as_it_can_be_read() -> None:
    assert told(row(steps=["?", {"name": "x", "details": [1]}]), row(steps=refreshed(a=1))) == []


def test_the_number_of_differences_is_bounded() -> None:
    this, that = ({f"n{key}": key + by for key in range(99)} for by in (0, 1))

    differences = told(row(steps=refreshed(**this)), row(steps=refreshed(**that)))

    assert len(differences) == MOST_DIFFERENCES
