"""`minutebook web` as a process: followed to the end, stopped, killed, and beside another one."""

import re
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event
from typing import Any
from uuid import UUID

import httpx
import psutil
import pytest
import sqlalchemy as sa

from models import tables
from models.operation import ENDED
from processes.web import STOP_WITHIN_S
from tests.acceptance.installation import Installation
from tests.acceptance.processes import until
from tests.acceptance.standstill import standing_still
from tests.acceptance.web_door import client, start_web
from tests.servers import PostgreSQL


def end_of(web: httpx.Client, id: object) -> dict[str, Any]:
    """Ask for an operation until it has ended; return it."""
    path = f"/api/operations/{id}"
    until(lambda: web.get(path).json()["state"] in ENDED, f"{path} has ended")
    shown: dict[str, Any] = web.get(path).json()
    return shown


@pytest.mark.parametrize("store", ["postgresql"])
def test_a_database_that_stands_still_does_not_hold_up_a_stop(
    installation: Installation, postgresql: PostgreSQL
) -> None:
    seen = sa.select(sa.func.count()).select_from(tables.workers)
    web, address = start_web(installation)
    with (
        client(installation, address, role="worker") as asked,
        ThreadPoolExecutor(1) as pool,
    ):
        waiting = pool.submit(asked.get, "/jobs/next")

        def is_seen() -> bool:
            with installation.engine.begin() as connection:
                return connection.scalar(seen) == 1

        until(is_seen, "the worker is recorded")
        with standing_still(installation, postgresql):
            web.send(signal.SIGTERM)
            code = web.ended(2 * STOP_WITHIN_S)

    assert (code, waiting.result().status_code) == (0, 503)
    assert "Traceback" not in web.text()


@pytest.mark.parametrize("store", ["postgresql"])
def test_a_request_that_waits_for_a_silent_database_is_cut_off_by_a_stop(
    installation: Installation, postgresql: PostgreSQL
) -> None:
    web, address = start_web(installation)
    port = int(address.rpartition(":")[2])
    # It now has a connection to the database, whose answer has no time limit.
    httpx.get(f"{address}/readyz").raise_for_status()
    with (
        closing(socket.create_connection(("127.0.0.1", port))) as asked,
        standing_still(installation, postgresql),
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


def job_due(installation: Installation, number: int) -> UUID:
    """Record an operation of a job of its own."""
    url = f"https://example.com/{number}"
    # Until its first beat, a lease lasts as long as the job may.
    brief = {"time_limit": "PT5S"}
    action = installation.action(url, operations={"job": {"url": url}}, policy=brief)
    return installation.operation(action)


def work(asked: list[httpx.Client], is_killed: Event, ended: Event) -> None:
    """Do jobs by the first server; from its end on, by the second.

    The first job is lost with its server: its worker never learns that it has got it.
    """
    at = 0
    while not ended.is_set():
        try:
            answer = asked[at].get("/jobs/next")
            if answer.status_code == 200 and at == 0:
                is_killed.wait(60)
            elif answer.status_code == 200:
                job = answer.json()
                asked[at].post(f"/jobs/{job['id']}/complete", json={"lease": job["lease"]})
        except httpx.TransportError:
            at = 1


@pytest.mark.parametrize("store", ["postgresql"])
def test_what_a_killed_server_handed_out_comes_again_from_another(
    installation: Installation,
) -> None:
    ids = [job_due(installation, number) for number in range(12)]
    short = {"SCHED_WORK_POP_TIMEOUT_S": "1"}
    (one, first), (_, second) = start_web(installation, short), start_web(installation, short)
    is_killed, ended = Event(), Event()
    with (
        client(installation, first, "worker") as early,
        client(installation, second, "worker") as late,
        client(installation, first, "viewer") as watcher,
        client(installation, second, "viewer") as other,
        ThreadPoolExecutor(4) as pool,
    ):
        path = f"/api/operations/{ids[-1]}"
        assert watcher.get(path).json()["state"] not in ENDED
        working = [pool.submit(work, [early, late], is_killed, ended) for _ in range(4)]
        installation.daemon()
        until(lambda: installation.count_of("running") > 0, "a job is handed out")
        one.kill()
        is_killed.set()
        try:
            with pytest.raises(httpx.TransportError):
                watcher.get(path)
            assert end_of(other, ids[-1])["state"] == "success"
            assert installation.all_end(ids) == ["success"] * 12
        finally:
            ended.set()
        for thread in working:
            thread.result(60)

    rows = installation.rows()
    assert 1 <= sum(row["losses"] for row in rows) <= 4
    assert all(row["attempt"] == 1 + row["losses"] for row in rows)


@pytest.mark.parametrize("store", ["sqlite"])
def test_a_taken_port_is_refused_with_what_to_do(installation: Installation) -> None:
    _, address = start_web(installation)
    port = address.rpartition(":")[2]

    check = installation.command("status", "--check", "web")
    on_port = {"SCHED_WEB_PORT": port}
    assert installation.processes.run(check, on_port).returncode == 0
    assert installation.processes.run(check, {"SCHED_WEB_PORT": "9"}).returncode == 1
    refused = installation.processes.run(installation.command("web", "--port", port))

    assert refused.returncode == 2
    assert f"127.0.0.1:{port}: Address already in use; set SCHED_WEB_PORT" in refused.stderr
