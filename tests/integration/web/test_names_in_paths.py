"""A name of any characters finds the same thing in the API, on a page and by a command."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from urllib.parse import quote

import httpx
import pytest

from cli.main import run
from runtime.sections.web import WebSettings
from services import changes, users
from services.apps import changes as app_changes
from tests.integration.web.conftest import APP, NIGHTLY, SHOP, Web
from tests.nginx import nginx
from tests.servers import free_port

BELOW = "/minutebook"
NAMES = ("/", r"a/b\c%2Fd", "no. #1? 100% a+b &=;'\" Köln: 東京", "x:pause", "x/next")
TEMPLATES = [name for name in NAMES if not set(name) & set("/\\")]
Named = tuple[Web, str]


@pytest.fixture(scope="module", params=["direct", "nginx"])
def named(request: pytest.FixtureRequest, share: Callable[..., Web]) -> Iterator[Named]:
    """A server with a user, an action and a template of each name, and its address."""
    below = BELOW if request.param == "nginx" else ""
    web = share(web=WebSettings(root_path=below))
    hello = SHOP["templates"]["hello"]  # type: ignore[index]
    document = {**SHOP, "templates": dict.fromkeys(TEMPLATES, hello)}
    app_changes.apply(web.shop, [("", document)])
    changes.add(web.shop, [{**NIGHTLY, "name": name} for name in NAMES])
    for name in NAMES:
        users.add(web.shop, users.NewUser(id=name, email="ann@example.com"))
    with ExitStack() as stack:
        address = web.url
        if below:
            port = free_port()
            location = f"location {below}/ {{ proxy_pass {web.url}; }}"
            stack.enter_context(nginx(f"server {{ listen 127.0.0.1:{port}; {location} }}", port))
            address = f"http://127.0.0.1:{port}{below}"
        yield web, address


def test_a_name_of_any_characters_finds_its_thing(
    named: Named, capsys: pytest.CaptureFixture[str]
) -> None:
    web, address = named
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


def test_a_page_leads_to_templates_of_any_name(named: Named) -> None:
    web, address = named
    with httpx.Client(headers={"Sec-Fetch-Site": "same-origin"}) as browser:
        browser.post(f"{address}/sign-in", data={"token": web.token()})

        for name in TEMPLATES:
            page = browser.get(f"{address}/apps/{APP}/templates/{quote(name, safe='')}")
            assert page.status_code == 200
            assert f"templates/{quote(name, safe='/')}/send-test" in page.text
