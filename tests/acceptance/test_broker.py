"""The broker never answers, or has something else in the place of a queue."""

import signal

from tests.acceptance.installation import Installation
from tests.acceptance.processes import until


def broker_errors(installation: Installation) -> int:
    return sum("broker_error" in tick["report"] for tick in installation.ticks())


def test_a_broker_that_accepts_but_never_answers_holds_up_no_recording(
    installation: Installation,
) -> None:
    daemon = installation.daemon()
    until(lambda: len(installation.ticks()) == 1, "the first tick")

    installation.broker.send_signal(signal.SIGSTOP)
    first = installation.due_action("first")
    until(lambda: broker_errors(installation) >= 1, "a tick that gives up on the broker")
    second = installation.due_action("second")
    installation.awaited_row(second)
    installation.broker.send_signal(signal.SIGCONT)

    installation.worker()
    ids = [row["id"] for row in installation.rows(first.uid, second.uid)]
    assert installation.all_end(ids) == ["success"] * 2
    assert len(installation.trace.starts()) == 2
    assert daemon.is_alive


def test_a_key_in_the_place_of_a_queue_costs_a_line_a_minute_and_ends_with_the_key(
    installation: Installation,
) -> None:
    worker = installation.worker(is_awaited=True)
    with installation.broker.client() as client:
        client.set("minutebook.quick", "x")
        worker.said("minutebook.quick cannot be read: WRONGTYPE")
        doctor = installation.processes.run(installation.command("doctor"))
        before = client.info("stats")["total_connections_received"]
        until(lambda: client.info("stats")["total_connections_received"] > before + 1, "a try")
        lines = worker.text().splitlines()
        client.delete("minutebook.quick")
    id = installation.operation(installation.action("due"))
    installation.tick()

    installation.becomes(id, "success")
    assert "minutebook.quick cannot be read: a key of another type" in doctor.stdout
    assert len(lines) == 2
