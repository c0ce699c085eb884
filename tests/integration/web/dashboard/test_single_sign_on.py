"""Sign-in by a header that a named proxy sets, as oauth2-proxy does."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from runtime.config import InvalidSetting, Settings, load_settings
from runtime.sections.named import Named
from runtime.sections.web import GroupSettings
from tests.factories import make_app
from tests.integration.web.conftest import Serve, Web
from tests.integration.web.dashboard.conftest import OWN_PAGE

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
    with httpx.Client(base_url=signs_on().url, headers=OWN_PAGE, follow_redirects=True) as made:
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
    browser.get("/sessions", headers=ANN)

    out = browser.post("/sign-out", headers=ANN)

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


GROUPS = "X-Auth-Request-Groups"
BY_GROUPS: dict[str, Any] = {
    "sso_groups_header": GROUPS,
    "sso_groups": Named(
        {
            "ops": GroupSettings(role="admin"),
            "staff": GroupSettings(role="viewer"),
            "press": GroupSettings(role="editor", app="press"),
            "press-watch": GroupSettings(role="viewer", app="press"),
            "crm": GroupSettings(role="operator", app="crm"),
            "gone": GroupSettings(role="operator", app="gone"),
        }
    ),
}


@pytest.fixture
def grouped(signs_on: SignOn) -> Iterator[httpx.Client]:
    """A browser behind a proxy that names groups."""
    web = signs_on(**BY_GROUPS)
    for name in ("press", "crm"):
        make_app(web.engine, name)
    with httpx.Client(base_url=web.url, follow_redirects=True) as made:
        yield made


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        pytest.param("ops", ">admin</a>", id="a_role_everywhere"),
        pytest.param("staff, ops", ">admin</a>", id="the_highest_of_several"),
        pytest.param("ops,crm", ">admin</a>", id="everywhere_stands_for_each_app"),
        pytest.param("crm,others", ">operator · crm</a>", id="a_role_in_one_app"),
        pytest.param("press-watch,press", ">editor · press</a>", id="the_highest_there"),
    ],
)
def test_the_groups_that_the_proxy_names_decide_about_the_role(
    grouped: httpx.Client, groups: str, role: str
) -> None:
    page = grouped.get("/actions", headers=ANN | {GROUPS: groups})

    assert page.status_code == 200
    assert role in page.text


def test_who_may_do_different_things_in_several_apps_chooses(grouped: httpx.Client) -> None:
    its = ANN | {GROUPS: "staff,press,crm"}

    asked = grouped.get("/actions", headers=its)
    chosen = grouped.get("/sign-in?next=/actions&app=press", headers=its)
    other = grouped.get("/sign-in?next=/actions&app=crm", headers=its)

    offered = re.findall(r"Continue as ann@example.com, (.+?)</a>", asked.text)
    assert offered == ["viewer of the installation", "operator of crm", "editor of press"]
    assert ">editor · press</a>" in chosen.text
    assert ">operator · crm</a>" in other.text


def test_a_choice_that_is_made_again_opens_no_other_session(grouped: httpx.Client) -> None:
    its = ANN | {GROUPS: "staff,press"}

    for _ in range(3):
        grouped.get("/sign-in?next=/sessions&app=", headers=its)
        page = grouped.get("/sign-in?next=/sessions&app=", headers=its)

    assert page.text.count("by sso ann@example.com") == 1


@pytest.mark.parametrize("groups", ["", ",", "others", "ops-too"])
def test_who_is_in_no_group_does_not_enter(grouped: httpx.Client, groups: str) -> None:
    page = grouped.get("/actions", headers=ANN | {GROUPS: groups})

    assert (page.status_code, page.url.path) == (403, "/sign-in")
    assert "is in no group that may look" in page.text


def test_an_app_that_no_longer_exists_is_named(grouped: httpx.Client) -> None:
    page = grouped.get("/actions", headers=ANN | {GROUPS: "gone"})

    assert page.status_code == 403
    assert "gone" in page.text


def test_a_session_ends_when_the_group_is_taken_away(grouped: httpx.Client) -> None:
    grouped.get("/actions", headers=ANN | {GROUPS: "ops"})

    page = grouped.get("/actions", headers=ANN | {GROUPS: "crm"})

    assert ">operator · crm</a>" in page.text


def test_a_choice_is_not_more_than_the_groups_allow(grouped: httpx.Client) -> None:
    page = grouped.get("/sign-in?next=/actions&app=press", headers=ANN | {GROUPS: "crm"})

    assert ">editor" not in page.text


def test_two_headers_of_groups_name_none(grouped: httpx.Client) -> None:
    headers = [*ANN.items(), (GROUPS, "ops"), (GROUPS, "staff")]

    assert grouped.get("/actions", headers=headers).status_code == 403


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"SCHED_WEB_SSO_GROUPS": "{}"}, None),
        ({"SCHED_WEB_SSO_GROUPS": '{"a": "viewer"}'}, "belong together"),
        ({"SCHED_WEB_SSO_GROUPS_HEADER": "X-Groups"}, "belong together"),
        ({"SCHED_WEB_SSO_GROUPS": '{"a": "owner"}', "SCHED_WEB_SSO_GROUPS_HEADER": "X"}, "viewer"),
        ({"SCHED_WEB_SSO_GROUPS": "ops=admin"}, "write JSON"),
        ({"SCHED_WEB_SSO_GROUPS": '{"": "admin"}'}, "'' is no name of a group"),
        ({"SCHED_WEB_SSO_GROUPS": '{"cn=ops,ou=it": "admin"}'}, "without commas"),
        ({"SCHED_WEB_SSO_GROUPS": '{" ops": "admin"}'}, "' ops' is no name of a group"),
    ],
)
def test_a_wrong_map_of_groups_stops_the_start(
    tmp_path: Path, variables: dict[str, str], says: str | None
) -> None:
    if says is None:
        assert load_settings(tmp_path, variables).web.sso_groups == {}
        return
    with pytest.raises(InvalidSetting, match=says):
        load_settings(tmp_path, variables)
