"""Sign-in by a header that a named proxy sets, as oauth2-proxy does."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from runtime.config import Settings
from tests.integration.web.conftest import Serve, Web

HEADER = "X-Auth-Request-Email"
ANN = {HEADER: "ann@example.com"}
BEN = {HEADER: "ben@example.com"}
PROXIED: dict[str, Any] = {"proxies": ("127.0.0.1",), "sso_header": HEADER, "sso_role": "operator"}

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
    with httpx.Client(base_url=signs_on().url, follow_redirects=True) as made:
        yield made


def test_whom_the_proxy_names_is_signed_in(browser: httpx.Client) -> None:
    page = browser.get("/sessions?a=b", headers=ANN | {"X-Forwarded-For": "203.0.113.7"})

    assert (page.status_code, page.url.raw_path) == (200, b"/sessions?a=b")
    assert "by sso ann@example.com" in page.text
    assert ">operator</a>" in page.text


def test_a_session_is_that_of_its_name_alone(browser: httpx.Client) -> None:
    browser.get("/sessions", headers=ANN)

    other = browser.get("/sessions", headers=BEN)
    nobody = browser.get("/sessions")

    assert "by sso ben@example.com" in other.text
    assert "ann@example.com" not in other.text
    assert nobody.url.path == "/sign-in"


def test_who_signs_out_is_asked_before_going_on(browser: httpx.Client) -> None:
    page = browser.get("/sessions", headers=ANN)
    csrf = page.text.partition('name="csrf" value="')[2][:64]

    out = browser.post("/sign-out", data={"csrf": csrf}, headers=ANN)

    assert out.url.path == "/sign-in"
    assert "Continue as ann@example.com" in out.text
    assert "mb_session" not in browser.cookies


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
        page = browser.get("/sessions")

    assert page.url.path == "/sign-in"
    assert "Continue as" not in page.text


def test_the_api_takes_no_name_for_a_token(browser: httpx.Client) -> None:
    assert browser.get("/api/apps", headers=ANN).status_code == 401


def test_the_audit_names_the_person(signs_on: SignOn) -> None:
    web = signs_on()
    httpx.get(f"{web.url}/sign-in?next=/", headers=ANN)

    with web.engine.connect() as connection:
        actor = connection.execute(
            sa.text("SELECT actor FROM audit WHERE verb = 'session.open'")
        ).scalar_one()

    assert actor == "sso ann@example.com"
