"""The database's clock is set under a running daemon: no healthy lease is lost."""

from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from tests.acceptance.installation import TICK_S, Installation
from tests.acceptance.processes import until
from tests.acceptance.shifted_clock import sitecustomize


class Clock:
    """A clock that is right until it is set; to be made before any process is started."""

    def __init__(self, installation: Installation) -> None:
        self._file = installation.file("clock_shift")
        self._file.write_text("0")
        processes = installation.processes
        folder = str(Path(sitecustomize.__file__).parent)
        processes.environment = {
            **processes.environment,
            "PYTHONPATH": f"{folder}:{processes.environment['PYTHONPATH']}",
            sitecustomize.VARIABLE: str(self._file),
        }

    def set_to(self, shift: timedelta) -> None:
        """Let it go that much before the right one."""
        fresh = self._file.with_suffix(".part")
        fresh.write_text(str(shift.total_seconds()))
        fresh.rename(self._file)


def right_after_a_heartbeat(installation: Installation, id: UUID, at_least_s: float) -> float:
    """Wait for a heartbeat so long before a tick; return how many seconds are left until it."""
    left_s: list[float] = []

    def has_beaten() -> bool:
        now, last = installation.now(), installation.row(id)["heartbeat_at"]
        left_s[:] = [TICK_S - (now.second + now.microsecond / 1e6) % TICK_S]
        return last is not None and (now - last).total_seconds() < 0.2 and left_s[0] > at_least_s

    until(has_beaten, f"a heartbeat {at_least_s} s before a tick")
    return left_s[0]


@pytest.mark.parametrize("store", ["sqlite"])
def test_a_clock_that_jumps_ahead_just_before_a_tick_costs_no_healthy_lease(
    installation: Installation,
) -> None:
    """Each lease looks older than it is until the next heartbeat, and the tick comes before."""
    clock = Clock(installation)
    slow = {"SCHED_WORKER_HEARTBEAT_S": "2", "SCHED_WORKER_LEASE_S": "6"}
    gate = {"until": str(installation.file("go"))}
    id = installation.operation(installation.action(operations={"trace_one": gate}))
    installation.worker(settings=slow)
    daemon = installation.daemon(slow)
    daemon.said("tick ", times=3)
    before_the_next = right_after_a_heartbeat(installation, id, at_least_s=3.5)

    clock.set_to(timedelta(seconds=before_the_next + 3))
    daemon.said("tick ", times=daemon.text().count("tick ") + 2)
    installation.file("go").touch()

    row = installation.becomes(id, "success")
    assert (row["attempt"], row["losses"]) == (1, 0)
