"""The dashboard as a browser meets it: clients with sessions."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from models.roles import Role
from runtime.egress.guard import authorities
from tests.integration.web.conftest import Web

# What a browser says of a form on one of our own pages.
OWN_PAGE = {"Sec-Fetch-Site": "same-origin"}

Browse = Callable[..., httpx.Client]


@pytest.fixture
def browse() -> Iterator[Browse]:
    """Open a browser that has signed in: by a token, by a new one of a role, or not at all."""
    opened: list[httpx.Client] = []

    def start(
        web: Web, role: Role | None = Role.ADMIN, app: str | None = None, token: str | None = None
    ) -> httpx.Client:
        browser = httpx.Client(
            base_url=web.url,
            timeout=30,
            headers=OWN_PAGE,
            verify=authorities(),
        )
        opened.append(browser)
        if role is not None:
            secret = token or web.token(role, app)
            signed_in = browser.post("/sign-in", data={"token": secret})
            assert signed_in.status_code == 303
        return browser

    yield start
    for browser in opened:
        browser.close()
