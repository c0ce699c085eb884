"""`run cancel` of what a real worker runs."""

from tests.acceptance.installation import Installation


def test_a_step_that_ignores_everything_is_ended_and_blocks_nobody(
    installation: Installation,
) -> None:
    blocked = {"until": str(installation.file("never")), "ignores_interrupts": True}
    action = installation.action(
        operations={"trace_one": blocked}, policy={"overlap": "queue", "time_limit": "PT1H"}
    )
    id = installation.operation(action, 1)
    installation.send()
    worker = installation.worker()
    pid = installation.step_starts(id)
    after = installation.operation(action)
    installation.send()

    installation.cli("run", "cancel", str(id), "--wait", "--timeout", "30")
    # The process that was ended could not send what waited for it: the next tick does.
    installation.tick()
    installation.step_starts(after)

    ((number, state, reason),) = installation.attempts(id)
    assert (number, state) == (1, "cancelled")
    assert str(reason).startswith("cancelled by ")
    assert worker.is_alive
    assert pid not in worker.children()
