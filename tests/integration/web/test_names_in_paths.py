"""A name of any characters finds the same thing in the API, on a page and by a command."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from urllib.parse import quote

import httpx
import pytest

from cli.main import run
from runtime.config import Settings
from services import changes, users
from services.apps import changes as app_changes
from tests.integration.web.conftest import APP, NIGHTLY, SHOP, Serve, Web, with_shop
from tests.nginx import nginx
from tests.servers import free_port

BELOW = "/minutebook"
NAMES = (
    "a/b",
    "/",
    r"a\b",
    "what?",
    "no. #1",
    "100%",
    "a%2Fb",
    "a b+c",
    "&=;'\"",
    "Köln: 東京",
    "x:pause",
    "x/next",
)
TEMPLATES = [name for name in NAMES if not set(name) & set("/\\")]
Site = tuple[Web, str]


@pytest.fixture(params=["direct", "nginx"])
def site(
    request: pytest.FixtureRequest, home_of: Callable[[str], Settings], serve: Serve
) -> Iterator[Site]:
    """A server with a user, an action and a template of each name, and its address."""
    settings = home_of("sqlite")
    below = BELOW if request.param == "nginx" else ""
    own = settings.web.model_copy(update={"root_path": below})
    web = with_shop(serve(settings.model_copy(update={"web": own})))
    shop = web.opened.for_request(APP, is_bound=True, bearer="tests")
    hello = SHOP["templates"]["hello"]  # type: ignore[index]
    app_changes.apply(shop, [("", {**SHOP, "templates": dict.fromkeys(TEMPLATES, hello)})])
    changes.add(shop, [{**NIGHTLY, "name": name} for name in NAMES])
    for name in NAMES:
        users.add(shop, users.NewUser(id=name, email="ann@example.com"))
    with ExitStack() as stack:
        address = web.url
        if below:
            port = free_port()
            location = f"location {below}/ {{ proxy_pass {web.url}; }}"
            stack.enter_context(nginx(f"server {{ listen 127.0.0.1:{port}; {location} }}", port))
            address = f"http://127.0.0.1:{port}{below}"
        yield web, address


def test_a_name_of_any_characters_finds_its_thing(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    web, address = site
    token = web.token()
    of_api = {"Authorization": f"Bearer {token}"}
    same_site = {"Sec-Fetch-Site": "same-origin"}
    with httpx.Client(headers=same_site) as browser:
        browser.post(f"{address}/sign-in", data={"token": token})

        for name in NAMES:
            part = quote(name, safe="")
            shown = httpx.get(f"{address}/api/actions/{part}?app={APP}", headers=of_api)
            paused = httpx.post(f"{address}/api/actions/{part}:pause?app={APP}", headers=of_api)
            user = httpx.get(f"{address}/api/apps/{APP}/users/{part}", headers=of_api)
            page = browser.get(f"{address}/apps/{APP}/actions/{part}")
            remote = ["--url", address, "--token", token, "--app", APP]

            assert (shown.json()["name"], paused.json()["name"]) == (name, name)
            assert user.json()["id"] == name
            assert page.status_code == 200
            assert shown.json()["uid"] in page.text
            for of, key in (("action", "uid"), ("user", "id")):
                assert run([*remote, of, "show", "--json", "--", name]) == 0
                assert json.loads(capsys.readouterr().out)[key] in {name, shown.json()["uid"]}


def test_a_page_leads_to_templates_of_any_name(site: Site) -> None:
    web, address = site
    with httpx.Client(headers={"Sec-Fetch-Site": "same-origin"}) as browser:
        browser.post(f"{address}/sign-in", data={"token": web.token()})

        for name in TEMPLATES:
            page = browser.get(f"{address}/apps/{APP}/templates/{quote(name, safe='')}")
            assert page.status_code == 200
            assert f"templates/{quote(name, safe='/')}/send-test" in page.text
