"""What a worker runs is shown from the database: with the broker stopped, too."""

import signal

from tests.acceptance.installation import Installation


def test_a_running_step_shows_its_progress_and_state_with_the_broker_stopped(
    installation: Installation,
) -> None:
    gate = installation.file("go")
    action = installation.action(operations={"trace_one": {"until": str(gate), "progress": 4}})
    id = installation.operation(action)
    installation.send()
    installation.worker()
    installation.awaits(id, lambda row: row["processed"] == 4)
    installation.broker.stop(signal.SIGKILL)

    shown = installation.cli("run", "show", str(id))

    assert shown["state"] == "running"
    assert (shown["progress"], shown["message"], shown["phase"]) == (0.4, "some of ten", "counting")
    gate.touch()
    installation.becomes(id, "success")
    assert installation.cli("run", "show", str(id))["state"] == "success"
