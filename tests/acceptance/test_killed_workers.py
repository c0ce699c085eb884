"""A worker's child is killed while a step runs."""

import os
import signal
from typing import Any
from uuid import UUID

import pytest

from tests.acceptance.installation import Installation
from tests.acceptance.processes import kill, until

FIRST_STEP = [(1, "trace_one", "start"), (1, "trace_one", "end")]


def running_operation(installation: Installation, step: str, **parameters: Any) -> UUID:
    """Send an operation of two steps, of which the second blocks until the file `go` appears."""
    blocked = {"until": str(installation.file("go")), **parameters}
    action = installation.action(operations={"trace_one": True, step: blocked})
    id = installation.operation(action)
    installation.send()
    return id


def test_the_step_alone_whose_process_was_killed_runs_again(installation: Installation) -> None:
    id = running_operation(installation, "trace_two")
    installation.daemon()
    installation.worker()

    kill(installation.step_starts(id, 2))
    installation.step_starts(id, 3)
    installation.file("go").touch()
    row = installation.becomes(id, "success")

    assert installation.trace.story(id) == [
        *FIRST_STEP,
        (1, "trace_two", "start"),
        (2, "trace_two", "start"),
        (2, "trace_two", "end"),
    ]
    assert (row["attempt"], row["losses"], row["failures"]) == (2, 1, 0)
    states = [state for _, state, _ in installation.attempts(id)]
    assert states == ["lost", "success"]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT], ids=["hangup", "quit"])
def test_a_signal_from_outside_counts_as_lost_as_well(
    installation: Installation, number: signal.Signals
) -> None:
    id = running_operation(installation, "trace_two")
    installation.worker()

    os.kill(installation.step_starts(id, 2), number)
    row = installation.awaits(id, lambda row: row["attempt"] == 2)

    assert (row["losses"], row["failures"]) == (1, 0)
    assert installation.attempts(id)[0][1:] == ("lost", "lost: a signal ended its process")


def test_a_lost_step_that_must_not_begin_twice_fails_its_operation_by_name(
    installation: Installation,
) -> None:
    id = running_operation(installation, "trace_once")
    installation.daemon()
    installation.worker()

    kill(installation.step_starts(id, 2))
    row = installation.becomes(id, "failed")

    assert row["reason"] == "lost"
    assert row["error"].endswith("; step trace_once was running")
    assert installation.trace.story(id) == [*FIRST_STEP, (1, "trace_once", "start")]


def test_a_child_killed_while_it_asks_whether_to_stop_harms_no_other(
    installation: Installation,
) -> None:
    asking = {"trace_one": {"asks_always": True, "until": str(installation.file("never"))}}
    victims = [
        installation.operation(installation.action(f"asking {n}", operations=asking))
        for n in range(3)
    ]
    beside = running_operation(installation, "trace_two")
    installation.worker(concurrency=4)
    installation.step_starts(beside, 2)
    pids = [installation.step_starts(id) for id in victims]

    for pid in pids:
        kill(pid)
    at = installation.row(beside)["heartbeat_at"]
    installation.awaits(beside, lambda row: row["heartbeat_at"] > at)
    at = installation.row(beside)["heartbeat_at"]
    installation.awaits(beside, lambda row: row["heartbeat_at"] > at)
    installation.file("go").touch()

    assert installation.becomes(beside, "success")["attempt"] == 1


@pytest.mark.parametrize("store", ["sqlite"])
def test_an_idle_worker_ends_at_once_and_leaves_nobody(installation: Installation) -> None:
    worker = installation.worker(is_awaited=True)

    worker.send(signal.SIGTERM)

    assert worker.ended() == 0, worker.text()
    until(lambda: not installation.processes.left(), "no process is left")
