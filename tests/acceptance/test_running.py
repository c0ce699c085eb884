"""A worker runs an operation: its steps, their story, what it says with the broker stopped."""

import signal

from tests.acceptance.installation import Installation

THREE = {"trace_one": True, "trace_two": True, "trace_three": True}


def test_a_due_action_is_recorded_sent_and_run_through_its_steps_in_order(
    installation: Installation,
) -> None:
    action = installation.due_action(operations=THREE)
    installation.worker()
    installation.daemon()

    [row] = installation.awaited_rows(action, 1)
    installation.becomes(row["id"], "success")

    assert installation.trace.story(row["id"]) == [
        (1, step, what) for step in THREE for what in ("start", "end")
    ]


def test_each_step_tells_its_story(installation: Installation) -> None:
    action = installation.action(operations={"trace_one": True, "trace_two": {"fail": 1}})
    id = installation.operation(action)
    installation.send()
    installation.worker()
    installation.becomes(id, "failed")

    shown = installation.cli("operation", "show", str(id))

    first, second = shown["steps"]
    assert (first["name"], first["state"], first["message"]) == (
        "trace_one", "success", "trace_one done",
    )  # fmt: skip
    assert first["details"] == {"by": "trace_one"}
    assert first["started_at"] <= first["finished_at"] <= second["started_at"]
    assert (second["name"], second["state"], second["error"]) == (
        "trace_two", "failed", "attempt 1 fails",
    )  # fmt: skip
    assert [(one["attempt"], one["state"]) for one in shown["attempts"]] == [(1, "failed")]
    lines = [one["message"] for one in installation.cli("operation", "logs", str(id))]
    assert lines == ["step trace_one of attempt 1", "step trace_two of attempt 1"]


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

    state = installation.cli("operation", "state", str(id))
    shown = installation.cli("operation", "show", str(id))

    assert state == {"id": str(id), "state": "running"}
    assert (shown["progress"], shown["message"], shown["phase"]) == (0.4, "some of ten", "counting")
    gate.touch()
    installation.becomes(id, "success")
    assert installation.cli("operation", "state", str(id))["state"] == "success"
