"""Two operations of one action meet at the claim: each overlap policy."""

from typing import Any
from uuid import UUID

import pytest

from models.operation import OperationState
from scheduler.changes.change import Changed
from tests.acceptance.installation import Installation


def first_runs(installation: Installation, overlap: str, **parameters: Any) -> tuple[Changed, UUID]:
    """Return an action and its operation that runs until the file `go` appears."""
    blocked = {"until": str(installation.file("go")), **parameters}
    action = installation.action(operations={"trace_one": blocked}, policy={"overlap": overlap})
    id = installation.operation(action, 3)
    installation.send()
    installation.worker(concurrency=2)
    installation.step_starts(id)
    return action, id


def next_comes(installation: Installation, action: Changed, minutes_ago: int = 0) -> UUID:
    id = installation.operation(action, minutes_ago)
    installation.send()
    return id


def test_skip_skips_the_later_one(installation: Installation) -> None:
    action, first = first_runs(installation, "skip")

    second = next_comes(installation, action)
    row = installation.becomes(second, "skipped")
    installation.file("go").touch()

    assert row["reason"] == f"overlap: {first} was running"
    installation.becomes(first, "success")
    assert installation.trace.starts(second) == []


def test_queue_lets_the_newest_wait_and_runs_it_after(installation: Installation) -> None:
    action, first = first_runs(installation, "queue")

    second = next_comes(installation, action, 2)
    installation.awaits(second, lambda row: row["waiting_for"] == first)
    third = next_comes(installation, action, 1)
    installation.awaits(third, lambda row: row["waiting_for"] == first)
    row = installation.becomes(second, "skipped")
    installation.file("go").touch()

    assert row["reason"] == "overlap: more than 1 waited"
    installation.becomes(third, "success")
    assert installation.row(first)["state"] == OperationState.SUCCESS
    assert [line.operation for line in installation.trace.lines()] == [first, first, third, third]


@pytest.mark.parametrize("is_stubborn", [False, True], ids=["heeds", "ignores_everything"])
def test_replace_cancels_the_running_step_and_runs_the_later_one(
    installation: Installation, is_stubborn: bool
) -> None:
    action, first = first_runs(installation, "replace", ignores_interrupts=is_stubborn)

    second = next_comes(installation, action)
    row = installation.becomes(first, "cancelled")
    # One that was killed could not send what waited for it: the next tick does.
    installation.tick()
    installation.step_starts(second)
    installation.file("go").touch()

    installation.becomes(second, "success")
    assert row["attempt"] == 1
    assert installation.trace.story(first) == [(1, "trace_one", "start")]


def test_allow_runs_both_at_once(installation: Installation) -> None:
    action, first = first_runs(installation, "allow")

    second = next_comes(installation, action)
    installation.step_starts(second)
    installation.file("go").touch()

    assert installation.all_end([first, second]) == ["success"] * 2
    whats = [line.what for line in installation.trace.lines()]
    assert whats == ["start", "start", "end", "end"]
