"""PostgreSQL is stopped and started while a step runs."""

import pytest

from tests.acceptance.installation import Installation
from tests.servers import PostgreSQL


@pytest.mark.parametrize("store", ["postgresql"])
@pytest.mark.parametrize("when", ["the_step_runs_on", "the_step_ends_meanwhile"])
def test_a_database_that_is_restarted_costs_no_lease_and_no_outcome(
    installation: Installation, postgresql: PostgreSQL, when: str
) -> None:
    gate = {"until": str(installation.file("go"))}
    id = installation.operation(installation.action(operations={"trace_one": gate}))
    daemon = installation.daemon()
    worker = installation.worker()
    installation.step_starts(id)

    postgresql.stop()
    # Longer than a lease: each failed heartbeat takes half a second.
    worker.said("heartbeat of", times=5)
    if when == "the_step_ends_meanwhile":
        installation.file("go").touch()
        worker.said("database unavailable, trying again")
    postgresql.start()
    daemon.said("tick ", times=daemon.text().count("tick ") + 2)
    installation.file("go").touch()
    row = installation.becomes(id, "success")

    assert (row["attempt"], row["losses"]) == (1, 0)
    assert installation.trace.story(id) == [(1, "trace_one", "start"), (1, "trace_one", "end")]
