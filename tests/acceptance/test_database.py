"""The database is stopped, or stands still, while a step runs."""

import pytest

from runtime.clock import monotonic
from tests.acceptance.installation import Installation
from tests.acceptance.processes import until
from tests.acceptance.standstill import standing_still
from tests.servers import PostgreSQL

# Seconds after the time limit: until the step is interrupted, and until its process is killed.
SHORT = {"SCHED_WORKER_SOFT_LIMIT_S": "0.5", "SCHED_WORKER_HARD_LIMIT_S": "1.5"}
LONGEST_S = 2 + 1.5 + 1


@pytest.mark.parametrize("store", ["postgresql"])
def test_a_database_that_is_restarted_costs_no_lease_and_no_outcome(
    installation: Installation, postgresql: PostgreSQL
) -> None:
    id = installation.held()
    daemon = installation.daemon()
    worker = installation.worker()
    installation.step_starts(id)

    postgresql.stop()
    worker.said("heartbeat of")
    failing_since = monotonic()
    until(lambda: monotonic() - failing_since > 2.5, "longer than a lease")
    postgresql.start()
    daemon.said("tick ", times=daemon.text().count("tick ") + 2)
    installation.go.touch()
    row = installation.becomes(id, "success")

    assert (row["attempt"], row["losses"]) == (1, 0)
    assert installation.trace.story(id) == [(1, "trace_one", "start"), (1, "trace_one", "end")]
    assert "[SQL: " not in worker.text()


@pytest.mark.parametrize("store", ["postgresql"])
def test_an_end_is_recorded_even_if_the_database_returns_after_the_time_limit(
    installation: Installation, postgresql: PostgreSQL
) -> None:
    id = installation.held(policy={"time_limit": "PT2S"})
    daemon = installation.daemon()
    worker = installation.worker(settings=SHORT)
    installation.step_starts(id)

    postgresql.stop()
    installation.go.touch()
    ended_at = monotonic()
    worker.said("database unavailable, trying again")
    until(lambda: monotonic() - ended_at > LONGEST_S, "longer than all limits")
    postgresql.start()
    daemon.said("tick ", times=daemon.text().count("tick ") + 2)
    row = installation.becomes(id, "success")

    assert (row["attempt"], row["losses"]) == (1, 0)
    assert installation.trace.story(id) == [(1, "trace_one", "start"), (1, "trace_one", "end")]


@pytest.mark.parametrize(
    ("store", "until_s"),
    [
        pytest.param("sqlite", 4.85, id="sqlite-between_ticks"),
        pytest.param("postgresql", 7.0, id="postgresql-over_a_tick"),
    ],
)
def test_a_database_that_stands_still_for_longer_than_a_lease_costs_no_healthy_lease(
    installation: Installation, until_s: float
) -> None:
    id = installation.held()
    installation.worker()
    daemon = installation.daemon()
    installation.step_starts(id)
    ticked = daemon.text().count("tick ")
    daemon.said("tick ", times=ticked + 1)

    with standing_still(installation):
        stands_since = monotonic()
        until(lambda: monotonic() - stands_since > until_s, "longer than a lease")
    daemon.said("tick ", times=ticked + 2)
    installation.go.touch()

    row = installation.becomes(id, "success")
    assert (row["attempt"], row["losses"]) == (1, 0)
    assert installation.trace.story(id) == [(1, "trace_one", "start"), (1, "trace_one", "end")]
    assert daemon.is_alive
