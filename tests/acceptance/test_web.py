"""`minutebook web` as a process: stopped, killed, and beside another one."""

import re
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import httpx
import psutil
import pytest
import sqlalchemy as sa

from models.tables import workers
from processes.web import STOP_WITHIN_S
from tests.acceptance.installation import Installation
from tests.acceptance.processes import until
from tests.acceptance.standstill import standing_still
from tests.transactions import fetched


@pytest.mark.parametrize("store", ["postgresql"])
def test_a_database_that_stands_still_does_not_hold_up_a_stop(
    installation: Installation,
) -> None:
    seen = sa.select(sa.func.count()).select_from(workers)
    web, address = installation.web()
    with (
        installation.client(address, role="worker") as asked,
        ThreadPoolExecutor(1) as pool,
    ):
        waiting = pool.submit(asked.get, "/jobs/next")
        until(lambda: fetched(installation.engine, seen).scalar_one() == 1, "it is recorded")
        with standing_still(installation):
            web.send(signal.SIGTERM)
            code = web.ended(2 * STOP_WITHIN_S)

    assert (code, waiting.result().status_code) == (0, 503)
    assert "Traceback" not in web.text()


@pytest.mark.parametrize("store", ["postgresql"])
def test_a_request_that_waits_for_a_silent_database_is_cut_off_by_a_stop(
    installation: Installation,
) -> None:
    web, address = installation.web()
    port = int(address.rpartition(":")[2])
    # It now has a connection to the database, whose answer has no time limit.
    httpx.get(f"{address}/readyz").raise_for_status()
    with (
        closing(socket.create_connection(("127.0.0.1", port))) as asked,
        standing_still(installation),
    ):
        asked.sendall(b"GET /readyz HTTP/1.1\r\nHost: here\r\n\r\n")
        # What came before this one is being handled.
        httpx.get(f"{address}/healthz").raise_for_status()
        web.send(signal.SIGTERM)
        code = web.ended(2 * STOP_WITHIN_S)

    assert code == 0
    # The one connection may be in use: then it is a new one that gets no answer.
    assert re.search("the database does not answer|database unavailable", web.text())


@pytest.mark.parametrize("store", ["sqlite"])
def test_it_opens_as_many_files_as_the_system_allows(installation: Installation) -> None:
    low = ["sh", "-c", 'ulimit -Sn 64; exec "$@"', "sh", *installation.command("web")]
    web = installation.processes.start("web", low)
    web.said("the API is at")

    soft, hard = psutil.Process(web.pid).rlimit(psutil.RLIMIT_NOFILE)

    assert soft == hard > 64


def handed_out(worker: httpx.Client) -> dict[str, Any]:
    """Ask for a job until there is one; return it."""
    found: list[dict[str, Any]] = []

    def is_there() -> bool:
        answer = worker.get("/jobs/next")
        found.extend([answer.json()] if answer.status_code == 200 else [])
        return bool(found)

    until(is_there, "a job is handed out")
    return found[0]


@pytest.mark.parametrize("store", ["postgresql"])
def test_what_a_killed_server_handed_out_comes_again_from_another(
    installation: Installation,
) -> None:
    # Until its first beat, a lease lasts as long as the job may.
    brief, steps = {"time_limit": "PT5S"}, {"job": {"url": "https://example.com/a"}}
    id = installation.operation(installation.action(operations=steps, policy=brief))
    short = {"SCHED_WORK_POP_TIMEOUT_S": "1"}
    (one, first), (_, second) = installation.web(short), installation.web(short)
    installation.daemon()
    with (
        installation.client(first, "worker") as early,
        installation.client(second, "worker") as late,
    ):
        lost = handed_out(early)
        one.kill()
        with pytest.raises(httpx.TransportError):
            early.get("/jobs/next")
        again = handed_out(late)
        path, lease = f"/jobs/{again['id']}/complete", {"lease": again["lease"]}
        late.post(path, json=lease).raise_for_status()

    row = installation.becomes(id, "success")
    assert (lost["operation_id"], again["operation_id"]) == (str(id), str(id))
    assert (row["attempt"], row["losses"]) == (2, 1)


@pytest.mark.parametrize("store", ["sqlite"])
def test_a_taken_port_is_refused_with_what_to_do(installation: Installation) -> None:
    _, address = installation.web()
    port = address.rpartition(":")[2]

    check = installation.command("status", "--check", "web")
    on_port = {"SCHED_WEB_PORT": port}
    assert installation.processes.run(check, on_port).returncode == 0
    assert installation.processes.run(check, {"SCHED_WEB_PORT": "9"}).returncode == 1
    refused = installation.processes.run(installation.command("web", "--port", port))

    assert refused.returncode == 2
    assert f"127.0.0.1:{port}: Address already in use; set SCHED_WEB_PORT" in refused.stderr
