"""The HTTP door as a client meets it: a real server on loopback, and tokens of every role."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from playwright.sync_api import Page

from broker.app import configure
from models.roles import Role
from models.store.tenants import app_apply
from models.tenant.document import parse_small_app
from runtime.config import Settings, load_settings
from runtime.egress.guard import authorities
from scheduler.changes.default_actions import give_maintenance
from services import changes, tokens, users
from services.installation import Installation
from tasks.built_in import built_in_steps
from tests.browser import Chromium, Tab, started
from tests.factories import installation_on, update_operation
from tests.servers import Broker
from tests.web_server import serving
from web.app import make_app

APP = "shop"
SHOP = {
    "name": APP,
    "zone": "Europe/Paris",
    "templates": {"hello": {"subject": "Hello", "text": "Hello {{ recipient.name }}"}},
}
ANN = {"id": "ann@example.com", "name": "Ann", "groups": ["buyers"]}
NIGHTLY = {
    "name": "nightly",
    "when": {"cron_rule": "0 3 * * *"},
    "operations": {"maintenance": {}},
}


@dataclass
class Web:
    """A server, its installation, and clients with tokens."""

    opened: Installation
    url: str
    app: FastAPI
    _clients: list[httpx.Client] = field(default_factory=list)

    @property
    def engine(self) -> sa.Engine:
        return self.opened.engine

    @property
    def shop(self) -> Installation:
        """The installation as the small app `shop` sees it."""
        return self.opened.for_request(APP, is_bound=True, bearer="tests")

    def token(self, role: Role = Role.ADMIN, app: str | None = None, **asked: Any) -> str:
        """Return a new token of the installation, or of one small app."""
        seen = self.opened.for_request(app, is_bound=app is not None, bearer="tests")
        return tokens.create(seen, role, **asked).token

    def client(
        self, role: Role | None = Role.ADMIN, app: str | None = None, **asked: Any
    ) -> httpx.Client:
        """Return a client with a new token of that role, or without one."""
        client = httpx.Client(base_url=self.url, timeout=30, verify=authorities())
        if role is not None:
            client.headers["Authorization"] = f"Bearer {self.token(role, app, **asked)}"
        self._clients.append(client)
        return client

    def close(self) -> None:
        for client in self._clients:
            client.close()


Serve = Callable[..., Web]
SiteWith = Callable[..., Web]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    with started() as browser:
        yield browser


@pytest.fixture
def opens() -> dict[str, Any]:
    """How `tab` is opened: its width, and options of a context."""
    return {}


@pytest.fixture
def tab(chromium: Chromium, site: Web, opens: dict[str, Any]) -> Iterator[Tab]:
    """A browser in which an admin of `site` is signed in; nothing may go wrong in it."""
    with chromium.tab(site.url, site.token(), **opens) as made:
        yield made
    assert made.faults == []


@pytest.fixture
def page(tab: Tab) -> Page:
    return tab.page


def served(stack: ExitStack, settings: Settings, app: str = "default") -> Web:
    """Serve an installation in a thread of this process, until the stack is closed."""
    configure(settings)
    opened = Installation(settings.home, app)
    opened.__dict__["settings"] = settings
    made = make_app(opened)
    stack.callback(opened.engine.dispose)
    web = Web(opened, stack.enter_context(serving(made, settings.web)), made)
    stack.callback(web.close)
    return web


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield partial(served, stack)


@pytest.fixture(scope="module")
def share(
    sqlite_template: Path, _broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Web]]:
    """Start a server like `site` that the tests of a module share: they leave it as it was."""
    with ExitStack() as stack:

        def start(**sections: dict[str, Any]) -> Web:
            home = tmp_path_factory.mktemp("shared")
            shutil.copy(sqlite_template, home / "minutebook.db")
            settings = load_settings(home, {"SCHED_BROKER_URL": _broker.url})
            return with_shop(served(stack, changed(settings, **sections)))

        yield start


@pytest.fixture(scope="module")
def shared(share: Callable[..., Web]) -> Web:
    """A server of all tests of a module, with the small app `shop` and its action `nightly`."""
    return share(work={"pop_timeout_s": 0.1})


@pytest.fixture
def web(settings: Settings, serve: Serve) -> Web:
    """A server on each store, with the small app `shop` and its action `nightly`."""
    return with_shop(serve(settings))


@pytest.fixture
def unserved(engine: sa.Engine, settings: Settings) -> Web:
    """An installation on each store that no server shows, with the small app `shop`."""
    return with_shop(Web(installation_on(engine, settings), "", FastAPI()))


@pytest.fixture
def site_with(home_of: Callable[[str], Settings], serve: Serve) -> SiteWith:
    """Start a server like `site` whose settings differ: of each section, these."""

    def start(store: str = "sqlite", **sections: dict[str, Any]) -> Web:
        return with_shop(serve(changed(home_of(store), **sections)))

    return start


@pytest.fixture
def site(site_with: SiteWith) -> Web:
    """A server on SQLite, with the small app `shop` and its action `nightly`."""
    return site_with(work={"pop_timeout_s": 0.1})


@pytest.fixture
def pop_timeout_s() -> float:
    return 5


@pytest.fixture
def desk(settings: Settings, serve: Serve, pop_timeout_s: float) -> Web:
    """A server on each store that hands out jobs."""
    return serve(changed(settings, work={"pop_timeout_s": pop_timeout_s}))


def changed(settings: Settings, **sections: dict[str, Any]) -> Settings:
    """Return settings of which these differ, by section."""
    its = {name: getattr(settings, name) for name in sections}
    update = {name: one.model_copy(update=sections[name]) for name, one in its.items()}
    return settings.model_copy(update=update)


def begin(web: Web, id: UUID, at: datetime, **known: Any) -> None:
    """Let a worker have begun a run at an instant."""
    began = dict.fromkeys(("started_at", "first_started_at", "heartbeat_at"), at)
    update_operation(web.engine, id, state="running", **{"worker": "w", **began, **known})


def with_shop(web: Web) -> Web:
    """Store the small app and its action; the template is checked where that is the subject."""
    with web.engine.begin() as connection:
        made = app_apply.apply_all(connection, [("", parse_small_app(SHOP))], "tests")
        give_maintenance(connection, made[0].app, built_in_steps())
    users.import_rows(web.shop, [ANN], raises_events=False)
    changes.add(web.shop, [NIGHTLY])
    return web
