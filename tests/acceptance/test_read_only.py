"""The database is read-only for a while: sessions of that time stay so, and are given up."""

import pytest

from runtime.clock import monotonic
from tests.acceptance.installation import Installation
from tests.acceptance.processes import until
from tests.acceptance.web_door import client, start_web
from tests.servers import PostgreSQL

TICK_S = 5
AWAY = "database unavailable"


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

    postgresql.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    if are_ended:
        of_it = f"FROM pg_stat_activity WHERE datname = '{name}'"
        postgresql.execute(f"SELECT pg_terminate_backend(pid) {of_it}")
        for process in (daemon, worker):
            process.said(AWAY, timeout_s=3 * TICK_S)
    since = monotonic()
    until(lambda: monotonic() - since > 3 * TICK_S, "three ticks")
    postgresql.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = off")
    ticked = daemon.text().count("tick ")

    daemon.said("tick ", times=ticked + 1, timeout_s=2 * TICK_S)
    with client(installation, address) as (door,):
        id = door.post(f"/api/actions/{action.uid}:run").raise_for_status().json()["id"]
    installation.becomes(id, "success", timeout_s=2 * TICK_S)
    for process in (daemon, worker, web):
        assert process.text().count(AWAY) <= 2, process.text()
