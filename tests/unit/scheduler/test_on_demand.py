"""Which range a backfill may run, what becomes of each occurrence, what a retry leaves out."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from models.errors import Refused
from models.fingerprint import operation_id
from models.operation import OperationState
from scheduler.on_demand.backfill_range import (
    CALLED_OFF,
    BackfillRequest,
    Mode,
    check_range,
    occurrences_in,
    sort_out,
)
from scheduler.on_demand.restart import is_begun
from tests.factories import make_plan, make_rule
from tests.ticks import DAY, HOUR, MINUTE, SECOND

UID = UUID("6f1d0c1e-0000-4000-8000-000000000001")
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
EVERY_MINUTE = make_plan(make_rule(cron_rule="* * * * *"))
KEPT = timedelta(days=90)
SUCCEEDED, FAILED = {"name": "one", "state": "success"}, {"name": "two", "state": "failed"}


def test_what_is_done_runs_waits_or_was_skipped_is_passed_over() -> None:
    for state in {*OperationState} - {OperationState.FAILED, OperationState.MISSED}:
        row = {"state": state, "reason": None}

        share = sort_out(UID, [NOON], {operation_id(UID, NOON): row}, Mode.ALL)

        assert (share.record, share.repeat, share.passed_over) == ([], [], 1)


@pytest.mark.parametrize(
    ("mode", "repeats"),
    [
        (Mode.MISSING, {"missed", "called off"}),
        (Mode.FAILED, {"failed"}),
        (Mode.ALL, {"missed", "called off", "failed"}),
    ],
)
def test_a_mode_says_what_is_wanted(mode: Mode, repeats: set[str]) -> None:
    rows: dict[str, dict[str, object]] = {
        "missed": {"state": OperationState.MISSED, "reason": None},
        "failed": {"state": OperationState.FAILED, "reason": None},
        "success": {"state": OperationState.SUCCESS, "reason": None},
        "called off": {"state": OperationState.CANCELLED, "reason": CALLED_OFF},
    }
    found = {operation_id(UID, NOON + n * HOUR): row for n, row in enumerate(rows.values())}

    share = sort_out(UID, [NOON + n * HOUR for n in range(5)], found, mode)

    assert share.repeat == [row for name, row in rows.items() if name in repeats]
    assert share.record == ([] if mode is Mode.FAILED else [NOON + 4 * HOUR])


def test_nothing_lies_outside_starts_at_and_ends_at() -> None:
    plan = EVERY_MINUTE.with_policy(starts_at=NOON + MINUTE, ends_at=NOON + 3 * MINUTE)

    found = occurrences_in(plan, BackfillRequest(UID, NOON, NOON + HOUR), "report")

    assert found == [NOON + MINUTE, NOON + 2 * MINUTE]


def test_a_range_with_more_is_refused_with_the_instants_that_part_it() -> None:
    with pytest.raises(Refused) as refused:
        occurrences_in(EVERY_MINUTE, BackfillRequest(UID, NOON, NOON + DAY), "report")

    assert str(refused.value) == (
        "'report' has more than 1,000 occurrences from 2026-01-05T12:00:00Z to"
        " 2026-01-06T12:00:00Z; write --to 2026-01-06T04:39:00Z, and start the next backfill"
        " --from 2026-01-06T04:40:00Z"
    )
    first, rest = ((NOON, NOON + 999 * MINUTE), (NOON + 1000 * MINUTE, NOON + DAY))
    parts = [
        occurrences_in(EVERY_MINUTE, BackfillRequest(UID, *ends), "") for ends in (first, rest)
    ]
    assert sum(map(len, parts)) == 24 * 60 + 1


def test_a_range_without_an_occurrence_is_refused_with_the_next_one() -> None:
    asked = BackfillRequest(UID, NOON + SECOND, NOON + 2 * SECOND)

    with pytest.raises(Refused, match=r"no occurrence from .*; its next one is 2026-01-05T12:01"):
        occurrences_in(EVERY_MINUTE, asked, "report")


def test_an_interval_from_the_end_has_no_occurrence_to_fill() -> None:
    plan = make_plan(make_rule(every="PT10M", **{"from": "end"}))

    with pytest.raises(Refused, match=r"counts from the end .* by `minutebook run retry`"):
        occurrences_in(plan, BackfillRequest(UID, NOON - HOUR, NOON, Mode.FAILED), "report")


@pytest.mark.parametrize(
    ("first", "last", "told"),
    [
        (NOON, NOON + 2 * MINUTE, "12:02:00Z, in the future; write 2026-01-05T12:00:30Z or"),
        (NOON, NOON - MINUTE, "begins at 2026-01-05T12:00:00Z, after 2026-01-05T11:59:00Z"),
        (NOON - KEPT, NOON, "write 2025-10-07T12:01:00Z or later"),
    ],
    ids=["future", "backwards", "older_than_kept"],
)
def test_a_range_that_cannot_be_is_refused(first: datetime, last: datetime, told: str) -> None:
    with pytest.raises(Refused, match=told):
        check_range(BackfillRequest(UID, first, last), NOON + 30 * SECOND, KEPT)
    check_range(BackfillRequest(UID, NOON - KEPT + MINUTE, NOON), NOON + 30 * SECOND, KEPT)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([], False, id="never_begun"),
        pytest.param([FAILED, SUCCEEDED], False, id="first_failed"),
        pytest.param([SUCCEEDED, FAILED], True, id="second_failed"),
        pytest.param([SUCCEEDED, SUCCEEDED], False, id="nothing_would_be_left"),
    ],
)
def test_what_of_an_operation_counts_as_done(steps: list[dict[str, Any]], expected: bool) -> None:
    assert is_begun(steps) is expected
