"""The judge of `make bench-peers` finds each kind of wrong count, and nothing in a right one."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from benchmarks.peers.judge import Verdict, judge
from benchmarks.peers.table import table as report
from tests.tables import table
from tests.ticks import MINUTE

NOON = datetime(2027, 6, 1, 12, tzinfo=UTC)
DUE = {"a": [NOON, NOON + MINUTE], "b": [NOON]}


def came(*arrivals: tuple[str, float]) -> list[tuple[str, datetime]]:
    """Return arrivals, each so many minutes after noon."""
    return [(entry, NOON + minutes * MINUTE) for entry, minutes in arrivals]


@pytest.mark.parametrize(
    ("arrivals", "lost", "doubled"),
    table(__file__, "each_arrival_counts_for_one_due_instant_of_its_entry"),
)
def test_each_arrival_counts_for_one_due_instant_of_its_entry(
    arrivals: Sequence[tuple[str, float]], lost: int, doubled: int
) -> None:
    assert judge(DUE, came(*arrivals)) == Verdict(3, lost, doubled)


def test_what_a_scheduler_does_not_offer_is_no_failure_in_the_table() -> None:
    cell = {"due": 1_000, "lost": 4, "doubled": 0}
    others: dict[str, Any] = {
        name: {} for name in ("celery beat", "django-celery-beat", "APScheduler 3")
    }
    shown = report({"faults": {**others, "RedBeat": {"two": cell}, "Minutebook": {"two": cell}}})

    row = next(line for line in shown.splitlines() if "two instances" in line)
    assert row.count("not supported") == 3
    assert row.endswith("| 4 / 0 | not supported | 4 / 0 |")
