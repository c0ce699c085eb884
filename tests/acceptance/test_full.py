"""The database's disk, or the broker's memory, is full: all is said, nothing is lost."""

import pytest

from runtime.clock import monotonic
from tests.acceptance.disks import Disk
from tests.acceptance.installation import Installation
from tests.acceptance.processes import until

ONCE = [(1, "trace_one", "start"), (1, "trace_one", "end")]


@pytest.fixture
def disk(installation: Installation) -> Disk:
    return Disk(installation)


def test_what_is_due_while_the_disk_is_full_runs_once_there_is_room(
    installation: Installation, disk: Disk
) -> None:
    worker = installation.worker()
    daemon = installation.daemon()
    daemon.said("tick ")
    disk.fill(daemon)
    actions = [installation.due_action(f"due {number}") for number in range(3)]

    daemon.said("database unavailable, trying again")
    assert installation.rows() == []
    disk.make_room()
    until(lambda: len(installation.rows()) == 3, daemon.text)

    ids = [row["id"] for row in installation.rows(*(action.uid for action in actions))]
    assert installation.all_end(ids) == ["success"] * 3
    assert sorted(line.operation for line in installation.trace.starts()) == sorted(ids)
    assert (daemon.is_alive, worker.is_alive) == (True, True)


def test_an_end_that_no_disk_takes_is_written_once_there_is_room(
    installation: Installation, disk: Disk
) -> None:
    gate = {"until": str(installation.file("go"))}
    id = installation.operation(installation.action(operations={"trace_one": gate}))
    daemon = installation.daemon()
    worker = installation.worker()
    installation.step_starts(id)

    disk.fill(daemon, worker)
    worker.said("heartbeat of")
    failing_since = monotonic()
    until(lambda: monotonic() - failing_since > 2.5, "longer than a lease")
    installation.file("go").touch()
    worker.said("database unavailable, trying again")
    daemon.said("database unavailable, trying again")
    disk.make_room()

    row = installation.becomes(id, "success")
    assert (row["attempt"], row["losses"]) == (1, 0)
    assert installation.trace.story(id) == ONCE


def fill_broker(installation: Installation, *, is_full: bool) -> None:
    """Let the broker refuse every message, or take them again."""
    with installation.broker.client() as client:
        client.config_set("maxmemory", 1 if is_full else 0)


@pytest.mark.parametrize("store", ["sqlite"])
def test_a_worker_outlives_a_broker_that_is_full(installation: Installation) -> None:
    """It cannot note that it holds a message; that one is lost, and sent again."""
    gate = {"until": str(installation.file("go"))}
    running = installation.operation(installation.action(operations={"trace_one": gate}))
    installation.send()
    worker = installation.worker(concurrency=2)
    installation.step_starts(running)
    worker.freeze()
    waiting = installation.operation(installation.action("waiting"))
    installation.send()
    fill_broker(installation, is_full=True)

    worker.thaw()
    worker.said("OutOfMemoryError")
    fill_broker(installation, is_full=False)
    installation.make_sendable(waiting)
    installation.send()
    installation.becomes(waiting, "success")
    installation.file("go").touch()
    installation.becomes(running, "success")

    assert [installation.trace.story(id) for id in (running, waiting)] == [ONCE, ONCE]
    assert worker.is_alive
