"""The database's clock is set, or it lost commits: a claim, a record or an end is undone."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.tables import attempts, operation_logs, operations
from tests.acceptance.installation import TICK_S, Installation
from tests.acceptance.processes import until
from tests.chaos import shifted

BEGAN = "the database went back: attempt 1 had begun"
UNCLAIMED = {
    "state": "queued",
    **dict.fromkeys(("worker", "secret", "started_at", "first_started_at", "heartbeat_at")),
}


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
    shift, processes = installation.home / "clock_shift", installation.processes
    shift.write_text("0")
    path = f"{Path(shifted.__file__).parent}:{processes.environment['PYTHONPATH']}"
    own = {"PYTHONPATH": path, shifted.FILE: str(shift)}
    processes.environment |= own
    slow = {"SCHED_WORKER_HEARTBEAT_S": "2", "SCHED_WORKER_LEASE_S": "6"}
    id = installation.held()
    installation.worker(settings=slow)
    daemon = installation.daemon(slow)
    daemon.said("tick ", times=3)
    before_the_next = right_after_a_heartbeat(installation, id, at_least_s=3.5)

    fresh = shift.with_suffix(".part")
    fresh.write_text(str(before_the_next + 3))
    fresh.rename(shift)
    daemon.said("tick ", times=daemon.text().count("tick ") + 2)
    installation.go.touch()

    row = installation.becomes(id, "success")
    assert (row["attempt"], row["losses"]) == (1, 0)


def running_operation(installation: Installation) -> UUID:
    """Return an operation that a worker runs: its step blocks until the file `go` appears."""
    id = installation.held()
    installation.send()
    installation.worker()
    installation.step_starts(id)
    return id


def put_back(installation: Installation, id: UUID, row: dict[str, Any] | None) -> None:
    """Let the database have this row of an operation, or none: no move leads to it."""
    with installation.engine.begin() as connection:
        for table in (operation_logs, attempts):
            connection.execute(sa.delete(table).where(table.c.operation_id == id))
        connection.execute(sa.delete(operations).where(operations.c.id == id))
        if row is not None:
            own = {column.name: row[column.name] for column in operations.c}
            connection.execute(sa.insert(operations).values(own))


def finding(installation: Installation) -> dict[str, Any] | None:
    found = installation.cli("status")["verdict"]["findings"]
    return next((one for one in found if one["kind"] == "database_went_back"), None)


@pytest.mark.parametrize("undone", [UNCLAIMED, {"secret": "another"}], ids=["undone", "anew"])
def test_a_worker_whose_claim_is_gone_stops_and_its_run_is_on_record(
    installation: Installation, undone: dict[str, Any]
) -> None:
    id = running_operation(installation)

    put_back(installation, id, {**installation.row(id), **undone})
    row = installation.awaits(id, lambda row: row["reason"] is not None)

    assert row["reason"] == BEGAN
    assert row["first_started_at"] is not None
    assert str(id) in (finding(installation) or {})["text"]


def test_what_began_unrecorded_runs_once_more_and_keeps_the_reason(
    installation: Installation,
) -> None:
    id = running_operation(installation)
    put_back(installation, id, {**installation.row(id), **UNCLAIMED})
    installation.awaits(id, lambda row: row["reason"] is not None)

    installation.go.touch()
    installation.make_sendable(id)
    installation.send()
    row = installation.becomes(id, "success")

    assert (row["attempt"], row["reason"]) == (1, BEGAN)


def test_a_worker_whose_operation_is_gone_stops_and_it_is_a_finding(
    installation: Installation,
) -> None:
    id = running_operation(installation)

    put_back(installation, id, None)
    until(lambda: finding(installation) is not None, "a finding")

    found = finding(installation)
    assert found is not None
    assert found["text"].endswith(f"run {id} is not recorded any more")


def test_an_end_that_is_undone_is_a_lost_attempt(installation: Installation) -> None:
    id = running_operation(installation)
    before = installation.row(id)
    installation.go.touch()
    installation.becomes(id, "success")

    put_back(installation, id, before)
    installation.daemon()
    row = installation.awaits(id, lambda row: row["attempt"] == 2 and row["state"] == "success")

    assert row["losses"] == 1
    assert installation.attempts(id)[0][1] == "lost"
