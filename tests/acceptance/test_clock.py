"""The database's clock is set under a running daemon: no minute is lost, none runs twice."""

from datetime import timedelta
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.tables import missed_spans
from runtime.database import reading
from scheduler.changes.change import Changed
from tests.acceptance.clocks import MINUTE, Clock, right_after_a_heartbeat, set_clock
from tests.acceptance.installation import Installation
from tests.acceptance.judgement import run_twice, violations
from tests.acceptance.processes import Process, until

HOUR = timedelta(hours=1)
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


def every_minute(installation: Installation, **policy: object) -> Changed:
    return installation.action(when=EVERY_MINUTE, policy={"overlap": "allow", **policy})


def newest_sent(installation: Installation, action: Changed) -> UUID:
    """Return the newest operation that is not missed: minutes go by while a test runs."""
    sent = [row["id"] for row in installation.rows(action.uid) if row["state"] != "missed"]
    newest: UUID = sent[-1]
    return newest


def test_a_clock_that_jumps_three_minutes_ahead_costs_no_minute(
    installation: Installation, clock: Clock
) -> None:
    action = every_minute(installation, catch_up="all")
    daemon = ticking_daemon(installation)

    set_clock(installation, clock, 3 * MINUTE)

    rows = installation.rows(action.uid)
    assert len(rows) >= 3
    assert {row["state"] for row in rows} <= {"pending", "queued"}
    assert violations(installation) == []
    assert daemon.is_alive


def test_a_clock_set_back_by_two_minutes_sends_nothing_twice(
    installation: Installation, clock: Clock
) -> None:
    action = every_minute(installation, catch_up="all")
    ticking_daemon(installation)
    set_clock(installation, clock, 3 * MINUTE)

    now = set_clock(installation, clock, MINUTE)

    assert installation.watermark(action) > now + MINUTE

    def sent_once() -> bool:
        """Compare again while minutes go by: each adds a row, and then its message."""
        ids = [str(row["id"]) for row in installation.rows(action.uid)]
        return sorted(installation.broker.messages("quick")) == sorted((id, 1) for id in ids)

    until(sent_once, lambda: f"sent: {installation.broker.messages('quick')}")


def test_an_hour_that_the_clock_jumps_over_is_downtime(
    installation: Installation, clock: Clock
) -> None:
    action = every_minute(installation)
    ticking_daemon(installation)

    set_clock(installation, clock, HOUR)

    states = [row["state"] for row in installation.rows(action.uid)]
    assert states.count("missed") == 10
    assert states[-1] in {"pending", "queued"}
    assert violations(installation) == []


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

    daemon.said("the clock went back by")
    assert installation.watermark(action) <= right + MINUTE
    later = [row for row in installation.rows(action.uid) if row["occurrence_at"] > right + MINUTE]
    assert sent in {row["id"] for row in later}
    assert "missed" not in {row["state"] for row in later}
    daemon.said("tick ", times=daemon.text().count("tick ") + 1)
    set_back = installation.cli("status")["clock_set_back"]
    assert set_back["seconds"] > 3000

    set_clock(installation, clock, HOUR)
    assert installation.row(sent)["attempt"] == 1
    assert violations(installation) == []
    assert run_twice(installation) == []


@pytest.mark.parametrize("store", ["postgresql"])
def test_what_could_not_be_sent_while_the_clock_was_ahead_is_sent_once_it_is_right(
    installation: Installation, clock: Clock
) -> None:
    action = every_minute(installation)
    ticking_daemon(installation)
    installation.broker.stop()
    set_clock(installation, clock, HOUR)
    unsent = newest_sent(installation, action)
    assert installation.row(unsent)["state"] == "pending"

    set_clock(installation, clock, timedelta())
    installation.broker.start()

    row = installation.becomes(unsent, "queued")
    assert (row["attempt"], row["sendings"]) == (1, 1)


def test_a_year_that_was_decided_by_mistake_takes_nothing_from_the_minutes_that_come(
    installation: Installation, clock: Clock
) -> None:
    action = every_minute(installation, catch_up="all")
    installation.tick("--at", (installation.now() + timedelta(days=365)).isoformat())
    mistaken = {row["id"] for row in installation.rows(action.uid)}

    ticking_daemon(installation)
    until(lambda: installation.watermark(action) <= installation.now(), "watermarks are set back")
    set_clock(installation, clock, 3 * MINUTE)

    right = [row for row in installation.rows(action.uid) if row["id"] not in mistaken]
    assert len(right) >= 3
    assert {row["state"] for row in right} <= {"pending", "queued"}
    left = {row["state"] for row in installation.rows(action.uid) if row["id"] in mistaken}
    assert left == {"queued"}
    with reading(installation.engine) as connection:
        assert connection.execute(sa.select(missed_spans)).all() == []


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
