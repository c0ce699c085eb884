"""The database's clock is set under a running daemon: no minute is lost, none runs twice."""

from datetime import timedelta
from uuid import UUID

import pytest

from scheduler.changes import Change
from tests.acceptance.clocks import Clock, right_after_a_heartbeat, set_clock
from tests.acceptance.installation import Installation
from tests.acceptance.judgement import run_twice, violations
from tests.acceptance.processes import Process
from tests.ticks import HOUR, MINUTE

EVERY_MINUTE = {"cron_rule": "* * * * *", "timezone": "UTC"}
ALL = {"catch_up": "all", "overlap": "allow"}


@pytest.fixture
def clock(installation: Installation) -> Clock:
    """The clock of an installation's database."""
    return Clock(installation)


def ticking_daemon(installation: Installation) -> Process:
    """Start a daemon; return after its first tick."""
    daemon = installation.daemon()
    daemon.said("tick ")
    return daemon


def every_minute(installation: Installation, **policy: object) -> Change:
    return installation.action(when=EVERY_MINUTE, policy={"overlap": "allow", **policy})


def newest_sent(installation: Installation, action: Change) -> UUID:
    """Return the newest operation that is not missed: minutes go by while a test runs."""
    sent = [row["id"] for row in installation.rows(action.uid) if row["state"] != "missed"]
    newest: UUID = sent[-1]
    return newest


def test_a_clock_that_was_an_hour_ahead_is_set_right_and_what_it_missed_is_withdrawn(
    installation: Installation, clock: Clock
) -> None:
    action = every_minute(installation)
    installation.worker()
    daemon = ticking_daemon(installation)
    set_clock(installation, clock, HOUR)
    sent = newest_sent(installation, action)
    installation.becomes(sent, "success")

    right = set_clock(installation, clock, timedelta())

    daemon.said("the clock was ahead by")
    assert installation.watermark(action) <= right + MINUTE
    later = [row for row in installation.rows(action.uid) if row["occurrence_at"] > right + MINUTE]
    assert sent in {row["id"] for row in later}
    assert "missed" not in {row["state"] for row in later}
    daemon.said("tick ", times=daemon.text().count("tick ") + 1)
    assert "clock" in installation.cli("status")["verdict"]["counts"]

    set_clock(installation, clock, HOUR)
    assert installation.row(sent)["attempt"] == 1
    assert violations(installation) == []
    assert run_twice(installation) == []


@pytest.mark.parametrize("store", ["sqlite"])
def test_a_clock_that_jumps_ahead_just_before_a_tick_costs_no_healthy_lease(
    installation: Installation, clock: Clock
) -> None:
    """Each lease looks older than it is until the next heartbeat, and the tick comes before."""
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
