"""However many slow requests an editor sends, workers keep their leases."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event, Semaphore
from urllib.parse import urlsplit

import httpx
import pytest

from models.operation import OperationState
from models.roles import Role
from services import status
from tests.factories import row_of
from tests.integration.web.conftest import SiteWith, Web
from tests.integration.web.jobs import make_due, make_job
from web.routing import THREADS

SLOW, WORKERS, BEATS = 200, 50, 3
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
        for number in range(WORKERS)
    ]
    client = web.client(Role.WORKER)
    # A lease lasts three of them: an answer that takes longer is an error here.
    client.timeout = web.opened.settings.worker.lease_s / 3

    with ThreadPoolExecutor(WORKERS) as pool:
        answers = list(pool.map(work, [client] * WORKERS))

    rows = [row_of(web.engine, id) for id in due]
    assert answers == [[200] * (BEATS + 1) + [204]] * WORKERS
    assert {(row["state"], row["attempt"]) for row in rows} == {(OperationState.SUCCESS, 1)}
