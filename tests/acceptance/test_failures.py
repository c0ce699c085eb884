"""Steps that fail, that nobody knows, and that do not end in time."""

from typing import Any

import pytest

from tests.acceptance.installation import Installation

SHORT = {"SCHED_WORKER_SOFT_LIMIT_S": "0.5", "SCHED_WORKER_HARD_LIMIT_S": "1.5"}
ONE_SECOND = {"time_limit": "PT1S"}


def test_a_failing_step_is_tried_again_after_its_backoff_and_each_attempt_is_on_record(
    installation: Installation,
) -> None:
    action = installation.action(
        operations={"trace_one": True, "trace_two": {"fail": 2}},
        policy={"retry": {"max_attempts": 3, "backoff": ["PT2S"]}},
    )
    id = installation.operation(action)
    installation.worker()
    installation.daemon()

    row = installation.becomes(id, "success")

    assert installation.attempts(id) == [
        (1, "failed", "attempt 1 fails"),
        (2, "failed", "attempt 2 fails"),
        (3, "success", None),
    ]
    assert (row["failures"], row["error"]) == (2, None)
    starts = [(line.attempt, line.step) for line in installation.trace.starts(id)]
    assert starts == [(1, "trace_one"), (1, "trace_two"), (2, "trace_two"), (3, "trace_two")]


@pytest.mark.parametrize("store", ["sqlite"])
def test_a_permanent_failure_is_not_tried_again(installation: Installation) -> None:
    action = installation.action(
        operations={"trace_one": {"fail": 9, "permanent": True}, "trace_two": True},
        policy={"retry": {"max_attempts": 3, "backoff": ["PT1S"]}},
    )
    id = installation.operation(action)
    installation.send()
    installation.worker()

    row = installation.becomes(id, "failed")

    assert (row["attempt"], row["error"]) == (1, "attempt 1 fails")
    assert [step["state"] for step in row["steps"]] == ["failed", "waiting"]


@pytest.mark.parametrize("store", ["sqlite"])
def test_a_step_that_the_worker_does_not_know_fails_its_operation_by_name(
    installation: Installation,
) -> None:
    known = installation.action("known", operations={"maintenance": True})
    ids = [installation.operation(one) for one in (installation.action(), known)]
    installation.send()
    installation.worker(settings={"SCHED_STEP_MODULES": "no_such_module"})

    assert installation.all_end(ids) == ["failed", "success"]
    error = installation.row(ids[0])["error"]
    assert error.startswith("this worker does not know the step 'trace_one'")
    assert "No module named 'no_such_module'" in error


def limited(installation: Installation, **parameters: Any) -> Any:
    """Run an operation whose step blocks for ever, under a limit of one second."""
    blocked = {"until": str(installation.file("never")), **parameters}
    action = installation.action(operations={"trace_one": blocked}, policy=ONE_SECOND)
    return installation.operation(action)


def test_a_step_that_ignores_its_time_limit_is_ended_and_the_worker_goes_on(
    installation: Installation,
) -> None:
    id = limited(installation, ignores_interrupts=True)
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


@pytest.mark.parametrize("store", ["sqlite"])
def test_a_step_that_stops_in_time_is_partial(installation: Installation) -> None:
    id = limited(installation, heeds_stop=True)
    installation.send()
    installation.worker()

    row = installation.becomes(id, "partial")

    assert (row["reason"], row["failures"]) == ("time box", 0)
