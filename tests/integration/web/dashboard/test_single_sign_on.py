"""Sign-in by a header that a named proxy sets, as oauth2-proxy does."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from models.roles import Role
from services import tokens
from tests.browser import OWN_PAGE
from tests.integration.web.conftest import SiteWith, Web
from tests.transactions import fetched

HEADER = "X-Auth-Request-Email"
ROLE = "X-Minutebook-Role"
ANN = {HEADER: "ann@example.com", ROLE: "operator"}
BEN = {HEADER: "ben@example.com", ROLE: "operator"}
PROXIED: dict[str, Any] = {
    "proxies": ("127.0.0.1",), "sso_header": HEADER, "sso_role_header": ROLE,
}  # fmt: skip


@pytest.fixture(scope="module")
def site(share: Callable[..., Web]) -> Web:
    return share(web=PROXIED)


@pytest.fixture
def browser(site: Web) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=site.url, headers=OWN_PAGE, follow_redirects=True) as made:
        yield made


def test_whom_the_proxy_names_is_known_at_once(browser: httpx.Client) -> None:
    page = browser.get("/account?a=b", headers=ANN | {"X-Forwarded-For": "203.0.113.7"})

    assert (page.status_code, page.url.raw_path) == (200, b"/account?a=b")
    assert ">operator</a>" in page.text
    assert "mb_session" not in browser.cookies


@pytest.mark.parametrize(
    ("said", "role"), [(["editor"], "editor"), (["admin", "viewer"], "viewer")], ids=str
)
def test_a_header_names_the_role_of_a_person(
    browser: httpx.Client, said: list[str], role: str
) -> None:
    page = browser.get("/account", headers=[(HEADER, "ann"), *((ROLE, one) for one in said)])

    assert f">{role}</a>" in page.text


@pytest.mark.parametrize(
    ("records", "said", "shown"),
    [
        pytest.param([("editor", "")], "admin", "editor", id="before_the_header"),
        pytest.param([("editor", "shop")], None, "editor · shop", id="in_a_small_app"),
        pytest.param([("viewer", "shop")], "admin", "admin", id="of_an_app_after_the_header"),
        pytest.param(
            [("editor", ""), ("admin", "shop")], None, "editor", id="installation_before_app"
        ),
        pytest.param([("viewer", ""), ("admin", "")], None, "admin", id="the_newest"),
        pytest.param([("worker", "")], None, "viewer", id="none_of_a_worker"),
    ],
)
def test_a_token_of_that_name_sets_role_and_small_app(
    site: Web, browser: httpx.Client, records: list[tuple[str, str]], said: str | None, shown: str
) -> None:
    seen = {"shop": site.shop, "": site.opened}
    ids = [tokens.create(seen[app], Role(role), None, "ann").id for role, app in records]
    browser.headers.update({HEADER: "ann"} | ({} if said is None else {ROLE: said}))

    page = browser.get("/account")
    for id in ids:
        tokens.revoke(site.opened, id)
    after = browser.get("/account")

    assert f">{shown}</a>" in page.text
    assert "/sign-out" not in page.text
    assert f">{said or 'viewer'}</a>" in after.text


def test_each_request_is_of_the_person_that_it_names(site: Web, browser: httpx.Client) -> None:
    browser.follow_redirects = False
    asked: list[tuple[str, dict[str, str]]] = [("pause", ANN), ("resume", BEN), ("pause", {})]
    answers = [browser.post(f"/apps/default/{verb}", headers=who) for verb, who in asked]

    actors = fetched(site.engine, sa.text("SELECT actor FROM audit ORDER BY id DESC LIMIT 2"))
    assert [one.headers["location"] for one in answers] == [
        "/apps/default", "/", "/sign-in?next=/",
    ]  # fmt: skip
    assert list(actors.scalars()) == ["sso ben@example.com", "sso ann@example.com"]


def test_a_token_gives_a_person_another_role_until_they_sign_out(
    site: Web, browser: httpx.Client
) -> None:
    browser.headers.update(ANN)
    form = browser.get("/sign-in?next=/account")
    as_admin = browser.post("/sign-in", data={"token": site.token(), "next": "/account"})
    out = browser.post("/sign-out")
    again = browser.get("/account")

    assert "Continue as ann@example.com" in form.text
    assert ">admin</a>" in as_admin.text
    assert out.url.path == "/sign-in"
    assert ">operator</a>" in again.text
    assert "Use a token" in again.text


def test_a_change_of_a_person_comes_from_a_page_of_ours(browser: httpx.Client) -> None:
    sent = ANN | {"Sec-Fetch-Site": "cross-site"}

    assert browser.post("/apps/default/pause", headers=sent).status_code == 403


@pytest.mark.parametrize(
    ("differs", "headers"),
    [
        pytest.param(
            {"proxies": ("192.0.2.1",)},
            [(HEADER, "ann"), ("X-Forwarded-For", "192.0.2.1")],
            id="another_address_that_names_the_proxy",
        ),
        pytest.param({"proxies": ()}, [(HEADER, "ann")], id="no_proxy"),
        pytest.param({"sso_header": ""}, [(HEADER, "ann")], id="no_header"),
        pytest.param({}, [(HEADER, "ann"), (HEADER, "ben")], id="two_names"),
        pytest.param({}, [(HEADER, "")], id="an_empty_name"),
    ],
)
def test_the_word_of_others_does_not_count(
    site_with: SiteWith, differs: dict[str, Any], headers: list[tuple[str, str]]
) -> None:
    url = site_with(web=PROXIED | differs).url

    page = httpx.get(f"{url}/account", headers=headers, follow_redirects=True)

    assert page.url.path == "/sign-in"
    assert "Continue as" not in page.text


def test_the_api_takes_no_name_for_a_token(browser: httpx.Client) -> None:
    assert browser.get("/api/apps", headers=ANN).status_code == 401
