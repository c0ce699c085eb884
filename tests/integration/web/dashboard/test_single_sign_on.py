"""Sign-in by a header that a named proxy sets, as oauth2-proxy does."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from models.roles import Role
from runtime.config import Settings
from services import tokens
from tests.integration.web.conftest import Serve, Web, with_shop
from tests.integration.web.dashboard.conftest import OWN_PAGE

HEADER = "X-Auth-Request-Email"
ROLE = "X-Minutebook-Role"
ANN = {HEADER: "ann@example.com", ROLE: "operator"}
BEN = {HEADER: "ben@example.com", ROLE: "operator"}
PROXIED: dict[str, Any] = {
    "proxies": ("127.0.0.1",), "sso_header": HEADER, "sso_role_header": ROLE,
}  # fmt: skip

SignOn = Callable[..., Web]


@pytest.fixture
def signs_on(home_of: Callable[[str], Settings], serve: Serve) -> SignOn:
    """Serve behind a proxy, with settings that differ."""

    def start(**differs: Any) -> Web:
        settings = home_of("sqlite")
        web = settings.web.model_copy(update=PROXIED | differs)
        return serve(settings.model_copy(update={"web": web}))

    return start


@pytest.fixture
def browser(signs_on: SignOn) -> Iterator[httpx.Client]:
    """A browser behind the proxy."""
    with httpx.Client(base_url=signs_on().url, headers=OWN_PAGE, follow_redirects=True) as made:
        yield made


def test_whom_the_proxy_names_is_known_at_once(browser: httpx.Client) -> None:
    page = browser.get("/account?a=b", headers=ANN | {"X-Forwarded-For": "203.0.113.7"})

    assert (page.status_code, page.url.raw_path) == (200, b"/account?a=b")
    assert ">operator</a>" in page.text
    assert "mb_session" not in browser.cookies


@pytest.mark.parametrize(
    ("said", "role"),
    [
        *(([(ROLE, one)], one) for one in ("viewer", "operator", "editor", "admin")),
        pytest.param([], "viewer", id="none"),
        pytest.param([(ROLE, "")], "viewer", id="empty"),
        pytest.param([(ROLE, "worker")], "viewer", id="that_of_a_worker"),
        pytest.param([(ROLE, "owner")], "viewer", id="unknown"),
        pytest.param([(ROLE, "admin"), (ROLE, "viewer")], "viewer", id="two"),
    ],
)
def test_a_header_names_the_role_of_a_person(
    signs_on: SignOn, said: list[tuple[str, str]], role: str
) -> None:
    with httpx.Client(base_url=signs_on().url, headers=[(HEADER, "ann"), *said]) as browser:
        assert f">{role}</a>" in browser.get("/account").text


@pytest.mark.parametrize(
    ("records", "said", "shown"),
    [
        pytest.param([("editor", None)], "admin", "editor", id="before_the_header"),
        pytest.param([("editor", "shop")], None, "editor · shop", id="in_a_small_app"),
        pytest.param([("viewer", "shop")], "admin", "admin", id="of_an_app_after_the_header"),
        pytest.param(
            [("editor", None), ("admin", "shop")], None, "editor", id="installation_before_app"
        ),
        pytest.param([("viewer", None), ("admin", None)], None, "admin", id="the_newest"),
        pytest.param([("worker", None)], None, "viewer", id="none_of_a_worker"),
    ],
)
def test_a_token_of_that_name_sets_role_and_small_app(
    signs_on: SignOn, records: list[tuple[str, str | None]], said: str | None, shown: str
) -> None:
    web = with_shop(signs_on())
    ids = []
    for role, app in records:
        seen = web.opened.for_request(app, is_bound=app is not None, bearer="tests")
        ids.append(tokens.create(seen, Role(role), None, "ann").id)
    of_role = {} if said is None else {ROLE: said}

    with httpx.Client(base_url=web.url, headers={HEADER: "ann"} | of_role | OWN_PAGE) as browser:
        page = browser.get("/account")
        browser.post("/apps/shop/pause")
        for id in ids:
            tokens.revoke(web.opened, id)
        after = browser.get("/account")

    assert f">{shown}</a>" in page.text
    assert "/sign-out" not in page.text
    assert f">{said or 'viewer'}</a>" in after.text
    with web.engine.connect() as connection:
        actors = connection.execute(sa.text("SELECT actor FROM audit WHERE verb LIKE '%pause%'"))
        assert set(actors.scalars()) <= {"sso ann"}


def test_each_request_is_of_the_person_that_it_names(signs_on: SignOn) -> None:
    web = signs_on()
    with httpx.Client(base_url=web.url, headers=OWN_PAGE) as browser:
        answers = [
            browser.post("/apps/default/pause", headers=ANN),
            browser.post("/apps/default/resume", headers=BEN),
            browser.post("/apps/default/pause"),
        ]

    with web.engine.connect() as connection:
        actors = connection.execute(sa.text("SELECT actor FROM audit ORDER BY id")).scalars().all()
    assert [one.headers["location"] for one in answers] == [
        "/apps/default", "/", "/sign-in?next=/",
    ]  # fmt: skip
    assert actors == ["sso ann@example.com", "sso ben@example.com"]


def test_a_token_gives_a_person_another_role_until_they_sign_out(signs_on: SignOn) -> None:
    web = signs_on()
    with httpx.Client(base_url=web.url, headers=OWN_PAGE | ANN, follow_redirects=True) as browser:
        form = browser.get("/sign-in?next=/account")
        as_admin = browser.post("/sign-in", data={"token": web.token(), "next": "/account"})
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
        pytest.param({"proxies": ("192.0.2.1",)}, [(HEADER, "ann")], id="another_address"),
        pytest.param(
            {"proxies": ("192.0.2.1",)},
            [(HEADER, "ann"), ("X-Forwarded-For", "192.0.2.1")],
            id="another_address_that_names_the_proxy",
        ),
        pytest.param({"proxies": ()}, [(HEADER, "ann")], id="no_proxy"),
        pytest.param({"sso_header": ""}, [(HEADER, "ann")], id="no_header"),
        pytest.param({}, [(HEADER, "ann"), (HEADER, "ben")], id="two_names"),
        pytest.param({}, [(HEADER, "")], id="an_empty_name"),
        pytest.param({}, [("X-Auth-Request-User", "ann")], id="another_header"),
    ],
)
def test_the_word_of_others_does_not_count(
    signs_on: SignOn, differs: dict[str, Any], headers: list[tuple[str, str]]
) -> None:
    web = signs_on(**differs)

    with httpx.Client(base_url=web.url, headers=headers, follow_redirects=True) as browser:
        page = browser.get("/account")

    assert page.url.path == "/sign-in"
    assert "Continue as" not in page.text


def test_the_api_takes_no_name_for_a_token(browser: httpx.Client) -> None:
    assert browser.get("/api/apps", headers=ANN).status_code == 401
