"""The database is read-only for a while: sessions of that time stay so, and are given up.

What cannot be written can still be read, by people who sign in meanwhile.
"""

import httpx
import pytest

from runtime.clock import monotonic
from tests.acceptance.disks import Disk
from tests.acceptance.installation import Installation
from tests.acceptance.processes import until
from tests.acceptance.web_door import client, start_web
from tests.servers import PostgreSQL

TICK_S = 5
AWAY = "database unavailable"
PAGES = ("/", "/actions", "/operations", "/apps", "/apps/default", "/health", "/health?doctor=1")


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
    web, address = start_web(installation)
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
    with client(installation, address) as door:
        id = door.post(f"/api/actions/{action.uid}:run").raise_for_status().json()["id"]
    installation.becomes(id, "success", timeout_s=2 * TICK_S)
    for process in (daemon, worker, web):
        assert process.text().count(AWAY) <= 2, process.text()


def test_people_sign_in_and_read_while_nothing_can_be_written(
    installation: Installation, postgresql: PostgreSQL
) -> None:
    """On SQLite, the disk of the web process is full."""
    action = installation.action()
    web, address = start_web(installation)
    token = installation.cli("token", "create", "--role", "operator")["token"]
    with client(installation, address) as door:
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
