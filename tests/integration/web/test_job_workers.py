"""The workers of examples/jobs do their work, and keep it however slow editors are."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Semaphore
from urllib.parse import urlsplit
from uuid import UUID

import httpx
import pytest

from models.operation import OperationState
from models.roles import Role
from runtime.clock import wait_for
from services import status
from tests.factories import row_of
from tests.hostile.raw_server import raw_server
from tests.integration.web.conftest import SiteWith, Web
from tests.integration.web.jobs import make_due, make_job
from tests.web_source import Page, WebSource, web_source
from web.routing import THREADS

FOLDER = Path(__file__).parents[3] / "examples" / "jobs"
WORKERS = {
    "worker.py": [sys.executable, "worker.py"],
    "worker.mjs": ["node", "worker.mjs"],
    "worker.go": ["go", "run", "worker.go"],
    "worker.sh": ["sh", "worker.sh"],
}
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def source() -> Iterator[WebSource]:
    with web_source() as made:
        yield made


@pytest.fixture(params=[name for name, words in WORKERS.items() if shutil.which(words[0])])
def start(request: pytest.FixtureRequest, site: Web, tmp_path: Path) -> Iterator[Start]:
    """Start a worker of `site`, or of another URL; all end with the test."""
    token = site.token(Role.WORKER)
    started: list[subprocess.Popen[bytes]] = []

    def run(url: str = site.url) -> "subprocess.Popen[bytes]":
        says = {"MINUTEBOOK_URL": url, "MINUTEBOOK_TOKEN": token}
        with (tmp_path / "worker.log").open("ab") as log:
            worker = subprocess.Popen(
                WORKERS[request.param], cwd=FOLDER, env={**os.environ, **says},
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        started.append(worker)
        return worker

    yield run
    for worker in started:
        if worker.poll() is None:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait(10)


def make_work(site: Web, url: str) -> UUID:
    return make_due(site.engine, make_job(site.engine, url))


def becomes(site: Web, id: UUID, state: str) -> bool:
    return wait_for(lambda: row_of(site.engine, id)["state"] == state, 30)


def test_a_worker_asks_again_after_a_server_that_ended_without_an_answer(start: Start) -> None:
    asked: list[bytes] = []

    def hang_up(connection: socket.socket, _over: threading.Event) -> None:
        asked.append(connection.recv(65_536))

    with raw_server(hang_up) as port:
        worker = start(f"http://127.0.0.1:{port}")
        assert wait_for(lambda: len(asked) > 1, 60)

    assert worker.poll() is None


def test_a_worker_completes_a_job_and_reports_another_as_failed(
    site: Web, source: WebSource, start: Start
) -> None:
    source.pages["/there"] = Page(b"12345")
    done, failed = make_work(site, f"{source.url}/there"), make_work(site, f"{source.url}/gone")

    start()

    assert becomes(site, done, "success")
    assert row_of(site.engine, done)["result"] == {"job": {"bytes": 5}}
    assert becomes(site, failed, "failed")


SLOW, MANY, BEATS = 200, 50, 3
SOON_S = 30


@pytest.fixture
def web(site_with: SiteWith) -> Web:
    return site_with("postgresql")


@pytest.fixture
def slow(web: Web, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Requests of an editor that hold all threads which there are for them."""
    begun, over = Semaphore(0), Event()

    def wait(*_: object) -> None:
        begun.release()
        over.wait(SOON_S * 10)

    monkeypatch.setattr(status, "assess", wait)
    address = (str(urlsplit(web.url).hostname), urlsplit(web.url).port)
    token = web.token(Role.EDITOR)
    asked = f"GET /api/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
    with ExitStack() as opened:
        for _ in range(SLOW):
            one = opened.enter_context(socket.create_connection(address, SOON_S))
            one.sendall(asked.encode())
        for _ in range(THREADS):
            assert begun.acquire(timeout=SOON_S)
        try:
            yield
        finally:
            over.set()


def work(client: httpx.Client) -> list[int]:
    """Take a job, keep it and end it; return the statuses of the answers."""
    job = client.get("/jobs/next").json()
    said = {"lease": job["lease"]}
    beats = [client.post(f"/jobs/{job['id']}/beat", json=said) for _ in range(BEATS)]
    told = client.post(f"/jobs/{job['id']}/progress", json={**said, "done": 1})
    done = client.post(f"/jobs/{job['id']}/complete", json=said)
    return [one.status_code for one in (*beats, told, done)]


def test_no_worker_loses_its_lease_to_the_requests_of_an_editor(web: Web, slow: None) -> None:
    due = [
        make_due(web.engine, make_job(web.engine, f"https://example.com/{number}"))
        for number in range(MANY)
    ]
    client = web.client(Role.WORKER)
    # A lease lasts three of them: an answer that takes longer is an error here.
    client.timeout = web.opened.settings.worker.lease_s / 3

    with ThreadPoolExecutor(MANY) as pool:
        answers = list(pool.map(work, [client] * MANY))

    rows = [row_of(web.engine, id) for id in due]
    assert answers == [[200] * (BEATS + 1) + [204]] * MANY
    assert {(row["state"], row["attempt"]) for row in rows} == {(OperationState.SUCCESS, 1)}
