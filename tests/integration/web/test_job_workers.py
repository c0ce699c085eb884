"""The workers of examples/jobs do their work, and report what they cannot do."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest

from models.roles import Role
from runtime.clock import wait_for
from tests.factories import row_of
from tests.hostile.raw_server import raw_server
from tests.integration.web.conftest import Web
from tests.integration.web.jobs import make_due, make_job
from tests.web_source import Page, WebSource, web_source

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
