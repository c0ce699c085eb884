"""The database is read-only, its disk or the broker's memory full: all is said, nothing is lost.

What cannot be written can still be read, by people who sign in meanwhile.
"""

import httpx
import pytest

from runtime.clock import monotonic
from tests.acceptance.installation import TICK_S, Installation
from tests.acceptance.processes import until
from tests.acceptance.standstill import Disk
from tests.servers import PostgreSQL

AWAY = "database unavailable"
PAGES = ("/", "/actions", "/operations", "/apps", "/apps/default", "/health", "/health?doctor=1")
ONCE = [(1, "trace_one", "start"), (1, "trace_one", "end")]


def test_what_is_due_while_the_disk_is_full_runs_once_there_is_room(
    installation: Installation,
) -> None:
    """What ran before goes on, and its end is written then."""
    disk, running = Disk(installation), installation.held()
    daemon, worker = installation.daemon(), installation.worker(concurrency=2)
    installation.step_starts(running)

    disk.fill(daemon, worker)
    for number in range(3):
        installation.due_action(f"due {number}")
    worker.said("heartbeat of")
    failing_since = monotonic()
    until(lambda: monotonic() - failing_since > 2.5, "longer than a lease")
    installation.go.touch()
    for process in (daemon, worker):
        process.said("database unavailable, trying again")
    assert len(installation.rows()) == 1
    disk.make_room()
    until(lambda: len(installation.rows()) == 4, daemon.text)

    ids = [row["id"] for row in installation.rows()]
    assert installation.all_end(ids) == ["success"] * 4
    assert sorted(line.operation for line in installation.trace.starts()) == sorted(ids)
    row = installation.row(running)
    assert (row["attempt"], row["losses"]) == (1, 0)
    assert (daemon.is_alive, worker.is_alive) == (True, True)


def fill_broker(installation: Installation, *, is_full: bool) -> None:
    """Let the broker refuse every message, or take them again."""
    with installation.broker.client() as client:
        client.config_set("maxmemory", 1 if is_full else 0)


@pytest.mark.parametrize("store", ["sqlite"])
def test_a_worker_outlives_a_broker_that_is_full(installation: Installation) -> None:
    """It cannot note that it holds a message; that one is lost, and sent again."""
    running = installation.held()
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
    installation.go.touch()
    installation.becomes(running, "success")

    assert [installation.trace.story(id) for id in (running, waiting)] == [ONCE, ONCE]
    assert worker.is_alive


def read_only(postgresql: PostgreSQL, name: str | None, *, are_ended: bool) -> None:
    """Let new sessions of a database only read; end those that are open, or keep them."""
    postgresql.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    if are_ended:
        of_it = f"FROM pg_stat_activity WHERE datname = '{name}'"
        postgresql.execute(f"SELECT pg_terminate_backend(pid) {of_it}")


@pytest.mark.parametrize("store", ["postgresql"])
@pytest.mark.parametrize("are_ended", [True, False], ids=["sessions_ended", "sessions_kept"])
def test_all_processes_write_again_within_two_ticks(
    installation: Installation, postgresql: PostgreSQL, are_ended: bool
) -> None:
    name = installation.engine.url.database
    action = installation.action()
    daemon, worker = installation.daemon(), installation.worker(is_awaited=True)
    web, address = installation.web()
    daemon.said("tick ")

    read_only(postgresql, name, are_ended=are_ended)
    if are_ended:
        for process in (daemon, worker):
            process.said(AWAY, timeout_s=3 * TICK_S)
    since = monotonic()
    until(lambda: monotonic() - since > 3 * TICK_S, "three ticks")
    postgresql.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = off")
    ticked = daemon.text().count("tick ")

    daemon.said("tick ", times=ticked + 1, timeout_s=2 * TICK_S)
    with installation.client(address) as door:
        id = door.post(f"/api/actions/{action.uid}:run").raise_for_status().json()["id"]
    installation.becomes(id, "success", timeout_s=2 * TICK_S)
    for process in (daemon, worker, web):
        assert process.text().count(AWAY) <= 2, process.text()


def test_people_sign_in_and_read_while_nothing_can_be_written(
    installation: Installation, postgresql: PostgreSQL
) -> None:
    """On SQLite, the disk of the web process is full."""
    action = installation.action()
    web, address = installation.web()
    token = installation.token("operator")
    with installation.client(address) as door:
        run = door.post(f"/api/actions/{action.uid}:run").raise_for_status().json()["id"]
    if installation.store == "postgresql":
        read_only(postgresql, installation.engine.url.database, are_ended=True)
        # The request that finds the sessions ended is refused.
        ready = f"{address}/readyz"
        until(lambda: httpx.get(ready).status_code == 204, "the web process connects again")
    else:
        Disk(installation).fill(web)

    own = {"Sec-Fetch-Site": "same-origin"}
    with httpx.Client(base_url=address, headers=own, timeout=60) as browser:
        signed_in = browser.post("/sign-in", data={"token": token})
        pages = [*PAGES, f"/apps/default/actions/{action.name}", f"/operations/{run}"]
        # Twice: the first error gives all connections up.
        answers = [browser.get(page).status_code for page in pages * 2]
        refused = browser.post(f"/operations/{run}/cancel")
    asked = httpx.get(f"{address}/api/status", headers={"Authorization": f"Bearer {token}"})

    assert signed_in.status_code == 303
    assert answers == [200] * len(answers)
    assert refused.status_code == 503
    assert asked.json()["verdict"]["state"] == "broken"
    assert installation.cli("status")["verdict"]["state"] == "broken"
