"""The dashboard as a browser meets it: clients with sessions."""

from collections.abc import Callable

import httpx
import pytest

from models.roles import Role
from models.store.workers import Heartbeat, beat
from services.apps import trust
from tests.browser import OWN_PAGE
from tests.integration.web.conftest import APP, Web
from tests.transactions import act

TASK = "shop.tasks.close_day"
# A worker reports its parameters.
SHOWN = "shop.tasks.export"

Browse = Callable[..., httpx.Client]


@pytest.fixture
def browse() -> Browse:
    """Open a browser that has signed in: by a token, by a new one of a role, or not at all."""

    def start(
        web: Web, role: Role | None = Role.ADMIN, app: str | None = None, token: str | None = None
    ) -> httpx.Client:
        browser = web.client(role=None)
        browser.headers.update(OWN_PAGE)
        if role is not None:
            signed_in = browser.post("/sign-in", data={"token": token or web.token(role, app)})
            assert signed_in.status_code == 303
        return browser

    return start


@pytest.fixture
def browser(site: Web, browse: Browse) -> httpx.Client:
    """A browser in which an admin of `site` has signed in."""
    return browse(site)


def with_tasks(web: Web) -> Web:
    """Let the small app send tasks, of which a worker follows one."""
    trust.trust_app(web.opened, APP, trust.TrustChange(tasks=("shop.*",)))
    takes = {SHOWN: ["city", "limit=5", "*", "dry_run=False", "**rest"]}
    follows = (TASK, SHOWN, "other.tasks.secret")
    worker = Heartbeat("celery@shop", "celery", 1, follows=follows, signatures=takes)
    act(web.engine, beat, worker)
    return web
