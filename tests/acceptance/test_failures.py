"""Steps that do not end in time."""

from tests.acceptance.installation import Installation

SHORT = {"SCHED_WORKER_SOFT_LIMIT_S": "0.5", "SCHED_WORKER_HARD_LIMIT_S": "1.5"}
ONE_SECOND = {"time_limit": "PT1S"}


def test_a_step_that_ignores_its_time_limit_is_ended_and_the_worker_goes_on(
    installation: Installation,
) -> None:
    blocked = {"until": str(installation.file("never")), "ignores_interrupts": True}
    action = installation.action(operations={"trace_one": blocked}, policy=ONE_SECOND)
    id = installation.operation(action)
    installation.send()
    worker = installation.worker(settings=SHORT)
    pid = installation.step_starts(id)

    row = installation.becomes(id, "failed")
    after = installation.operation(installation.action("after"))
    installation.send()
    installation.becomes(after, "success")

    assert (row["reason"], row["attempt"], row["failures"]) == ("time limit", 1, 1)
    assert installation.attempts(id) == [(1, "failed", "time limit")]
    assert worker.is_alive
    assert pid not in worker.children()
    assert installation.step_starts(after) in worker.children()
