"""A step that ignores all is ended, beyond its limit or cancelled, and its worker goes on."""

from typing import Any
from uuid import UUID

from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process

SHORT = {"SCHED_WORKER_SOFT_LIMIT_S": "0.5", "SCHED_WORKER_HARD_LIMIT_S": "1.5"}


def blocked(installation: Installation, policy: dict[str, Any]) -> tuple[UUID, UUID, Process, int]:
    """Return a run that blocks, the next one of its action, their worker and the step's pid."""
    steps = {"trace_one": {"until": str(installation.file("never")), "ignores_interrupts": True}}
    action = installation.action(operations=steps, policy={"overlap": "queue", **policy})
    id = installation.operation(action, 1)
    installation.send()
    worker = installation.worker(settings=SHORT)
    pid = installation.step_starts(id)
    after = installation.operation(action)
    installation.send()
    return id, after, worker, pid


def goes_on(installation: Installation, after: UUID, worker: Process, pid: int) -> None:
    # The process that was ended could not send what waited for it: the next tick does.
    installation.tick()
    installation.step_starts(after)

    assert worker.is_alive
    assert pid not in worker.children()


def test_a_step_that_ignores_its_time_limit_is_ended_and_the_worker_goes_on(
    installation: Installation,
) -> None:
    id, after, worker, pid = blocked(installation, {"time_limit": "PT1S"})

    row = installation.becomes(id, "failed")

    assert (row["reason"], row["attempt"], row["failures"]) == ("time limit", 1, 1)
    assert installation.attempts(id) == [(1, "failed", "time limit")]
    goes_on(installation, after, worker, pid)


def test_a_step_that_ignores_everything_is_ended_and_blocks_nobody(
    installation: Installation,
) -> None:
    id, after, worker, pid = blocked(installation, {"time_limit": "PT1H"})

    installation.cli("run", "cancel", str(id), "--wait", "--timeout", "30")

    ((number, state, reason),) = installation.attempts(id)
    assert (number, state) == (1, "cancelled")
    assert str(reason).startswith("cancelled by ")
    goes_on(installation, after, worker, pid)
