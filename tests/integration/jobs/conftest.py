"""Jobs as workers meet them: a real server on loopback, and tokens of workers."""

import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
import sqlalchemy as sa
import uvicorn
from fastapi import FastAPI

from broker.sending import send_reserved
from models.job import JOB
from models.roles import Role
from models.store.operations.outbox import Message
from runtime.clock import wait_for
from runtime.config import Settings
from runtime.sections import AlertSettings
from runtime.web_settings import WorkSettings
from scheduler.changes.change import Changed
from tests.factories import make_action, make_operation
from views import tokens
from views.installation import Installation
from web.app import make_app, stop_streams

URL = "https://example.com/feed"
NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
ALERTS = AlertSettings()


@dataclass
class Desk:
    """A server that hands out jobs, and clients with tokens of workers."""

    opened: Installation
    app: FastAPI
    url: str
    server: uvicorn.Server
    clients: list[httpx.Client] = field(default_factory=list)

    @property
    def engine(self) -> sa.Engine:
        return self.opened.engine

    def token(self, role: Role = Role.WORKER, app: str | None = None) -> str:
        seen = self.opened.for_request(app, is_bound=app is not None, bearer="tests")
        return tokens.create(seen, role, None).token

    def client(self, role: Role = Role.WORKER, app: str | None = None) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.token(role, app)}"}
        made = httpx.Client(base_url=self.url, headers=headers, timeout=30)
        self.clients.append(made)
        return made

    def stop(self) -> None:
        for client in self.clients:
            client.close()
        stop_streams(self.app)
        self.server.should_exit = True


@pytest.fixture
def pop_timeout_s() -> float:
    """How long a worker waits for a job."""
    return 5


@pytest.fixture
def desk(settings: Settings, engine: sa.Engine, pop_timeout_s: float) -> Iterator[Desk]:
    """A server on each store."""
    opened = Installation(settings.home)
    work = WorkSettings(pop_timeout_s=pop_timeout_s)
    opened.__dict__["settings"] = settings.model_copy(update={"work": work})
    opened.__dict__["engine"] = engine
    app = make_app(opened)
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as own:
        config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=5)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [own]}, daemon=True)
        thread.start()
        assert wait_for(lambda: server.started, 30)
        made = Desk(opened, app, f"http://127.0.0.1:{own.getsockname()[1]}", server)
        yield made
        made.stop()
        thread.join(20)
        assert not thread.is_alive()


def make_job(engine: sa.Engine, url: str = URL, **changes: Any) -> Changed:
    """Store an action whose operations are a job's."""
    document = {
        "name": url.rpartition("/")[2],
        "operations": {"job": {"url": url, "meta": {"depth": 2}}},
        "when": {"every": "PT5M"},
        **changes,
    }
    return make_action(engine, **document)


def make_due(engine: sa.Engine, action: Changed, number: int = 0) -> UUID:
    """Record an operation of a job and send it, as a tick does."""
    id = make_operation(engine, action, NOON + timedelta(minutes=5 * number))
    send_reserved(engine, [Message(id, 1, JOB, action.plan.queue)])
    return id
