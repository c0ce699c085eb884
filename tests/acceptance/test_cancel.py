"""`operation cancel` and `retry` of what real workers run."""

import pytest

from tests.acceptance.installation import Installation

BLOCKED_FOR_EVER = "never"


def test_a_step_that_ignores_everything_is_ended_and_blocks_nobody(
    installation: Installation,
) -> None:
    blocked = {"until": str(installation.file(BLOCKED_FOR_EVER)), "ignores_interrupts": True}
    action = installation.action(
        operations={"trace_one": blocked}, policy={"overlap": "queue", "time_limit": "PT1H"}
    )
    id = installation.operation(action, 1)
    installation.send()
    worker = installation.worker()
    pid = installation.step_starts(id)
    after = installation.operation(action)
    installation.send()

    installation.cli("operation", "cancel", str(id), "--wait", "--timeout", "30")
    # The process that was ended could not send what waited for it: the next tick does.
    installation.tick()
    installation.step_starts(after)

    ((number, state, reason),) = installation.attempts(id)
    assert (number, state) == (1, "cancelled")
    assert str(reason).startswith("cancelled by ")
    assert worker.is_alive
    assert pid not in worker.children()


@pytest.mark.parametrize("store", ["sqlite"])
def test_a_retry_begins_at_the_step_that_failed(installation: Installation) -> None:
    action = installation.action(operations={"trace_one": True, "trace_two": {"fail": 1}})
    id = installation.operation(action)
    installation.send()
    installation.worker()
    installation.becomes(id, "failed")

    [retried] = installation.cli("operation", "retry", str(id), "--wait", "--timeout", "30")

    assert (retried["state"], retried["attempt"]) == ("success", 2)
    assert installation.trace.story(id) == [
        (1, "trace_one", "start"),
        (1, "trace_one", "end"),
        (1, "trace_two", "start"),
        (1, "trace_two", "fail"),
        (2, "trace_two", "start"),
        (2, "trace_two", "end"),
    ]
    assert installation.attempts(id) == [
        (1, "failed", "attempt 1 fails"),
        (2, "success", None),
    ]
