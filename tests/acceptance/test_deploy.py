"""A worker is told to stop (a deploy) while a step runs: nothing counts as failed or lost."""

import signal
from typing import Any
from uuid import UUID

import pytest

from models.operation import OperationState
from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process, until

LONG_GRACE = {"SCHED_WORKER_STOP_GRACE_S": "3"}


def begin(
    installation: Installation, step: str = "trace_two", grace: dict[str, str] | None = None,
    **parameters: Any,
) -> tuple[UUID, Process]:  # fmt: skip
    """Run an operation of two steps, of which the second is held."""
    id = installation.held("trace_one", step, **parameters)
    installation.send()
    worker = installation.worker(settings=grace)
    installation.step_starts(id, 2)
    return id, worker


def test_a_step_that_ends_within_the_grace_finishes(installation: Installation) -> None:
    id, worker = begin(installation, grace=LONG_GRACE)

    worker.send(signal.SIGTERM)
    worker.said("Initiating Soft Shutdown")
    installation.go.touch()

    assert worker.ended() == 0
    row = installation.row(id)
    assert (row["state"], row["attempt"]) == (OperationState.SUCCESS, 1)
    until(lambda: not installation.processes.left(), "no process is left")


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({}, id="a_step_that_is_interrupted"),
        pytest.param({"ignores_interrupts": True}, id="a_step_that_ignores_everything"),
        pytest.param({"heeds_stop": True}, id="a_step_that_stops_when_asked"),
    ],
)
def test_what_does_not_end_is_given_back_at_once_and_goes_on_elsewhere(
    installation: Installation, how: dict[str, Any]
) -> None:
    id, worker = begin(installation, **how)

    worker.send(signal.SIGTERM)
    worker.ended()
    row = installation.row(id)

    assert (row["state"], row["attempt"], row["failures"], row["losses"]) == ("pending", 2, 0, 0)
    assert row["steps"][0]["state"] == "success"
    until(lambda: not installation.processes.left(), "no process is left")
    installation.go.touch()
    installation.worker()
    installation.send()
    row = installation.becomes(id, "success")
    assert (row["attempt"], row["failures"], row["losses"]) == (2, 0, 0)
    starts = [(line.attempt, line.step) for line in installation.trace.starts(id)]
    assert starts == [(1, "trace_one"), (1, "trace_two"), (2, "trace_two")]


def test_a_step_that_must_not_begin_twice_is_not_given_back_when_it_is_cut_off(
    installation: Installation,
) -> None:
    id, worker = begin(installation, "trace_once")

    worker.send(signal.SIGTERM)
    worker.ended()
    row = installation.row(id)

    assert (row["state"], row["attempt"]) == ("failed", 1)
    assert "trace_once" in row["error"]


def test_messages_that_a_stopping_worker_held_are_run_by_the_next(
    installation: Installation,
) -> None:
    ids = [installation.held(name=f"held {n}") for n in range(5)]
    installation.send()
    worker = installation.worker(concurrency=2)
    until(lambda: len(installation.trace.starts()) == 2, "two steps run")

    worker.send(signal.SIGTERM)
    worker.ended()
    installation.go.touch()
    installation.worker(concurrency=2)
    # What Celery popped in the moment of its stop comes again by the outbox, minutes later: now.
    installation.make_sendable(*ids)
    installation.send()

    assert installation.all_end(ids) == ["success"] * 5
    rows = [installation.row(id) for id in ids]
    assert sum(row["failures"] + row["losses"] for row in rows) == 0
    assert len(installation.trace.starts()) == 7
