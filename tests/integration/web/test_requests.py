"""Odd requests: names of any characters, aborted ones, foreign hosts, hostile texts, proxies."""

import json
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from urllib.parse import quote, urlsplit

import httpx
import pytest

from cli.main import run
from models.errors import Refused
from models.roles import Role
from processes.listening import listening
from services import changes, users
from services.apps import changes as app_changes
from tests.integration.web.conftest import APP, NIGHTLY, SHOP, SiteWith, Web
from tests.integration.web.test_overview import tick
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
    web = share(web={"root_path": below})
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


def test_a_proxy_that_comes_by_ipv4_is_known_where_all_addresses_are_served(
    site_with: SiteWith,
) -> None:
    web = site_with(web={"host": "::", "proxies": ("127.0.0.1",)})
    said = {"X-Forwarded-Proto": "https", "Sec-Fetch-Site": "same-origin"}

    answer = httpx.post(f"{web.url}/sign-in", data={"token": web.token()}, headers=said)

    assert answer.headers["set-cookie"].endswith("; Secure")


@pytest.mark.parametrize(
    ("host", "remedy"),
    [
        pytest.param("192.0.2.1", "set SCHED_WEB_HOST", id="of_another_machine"),
        pytest.param("127.0.0.1", "set SCHED_WEB_PORT to a free port", id="taken"),
        pytest.param("127.0.0..1", "set SCHED_WEB_HOST", id="of_an_empty_label"),
    ],
)
def test_an_address_that_cannot_be_served_is_refused_with_what_to_set(
    host: str, remedy: str
) -> None:
    port = free_port()
    with listening("127.0.0.1", port), pytest.raises(Refused, match=remedy):
        listening(host, port)


@pytest.mark.parametrize(("host", "own"), [("localhost", "127.0.0.1"), ("::1", "::1")])
def test_a_name_means_its_ipv4_address_and_an_address_itself(host: str, own: str) -> None:
    with listening(host, 0) as made:
        assert made.getsockname()[0] == own


WITH_A_SLASH_TOO_MANY = ("/api/apps/", "/api/actions/?limit=3&app=x", "/actions/", "/api/apps///")


def test_a_path_with_a_slash_too_many_is_not_found(site: Web) -> None:
    client = site.client(Role.VIEWER)

    for path in WITH_A_SLASH_TOO_MANY:
        answer = client.get(path, headers={"Host": "evil.example"}, follow_redirects=False)
        assert answer.status_code == 404
        assert "evil.example" not in f"{answer.headers}{answer.text}"


def test_no_redirect_leads_to_another_server(site: Web) -> None:
    client = site.client(Role.VIEWER)

    for path in ("//evil.example/", "//evil.example/actions", "/%2F/a/"):
        answer = client.get(f"{site.url}{path}", follow_redirects=False)
        assert not answer.headers.get("location", "/").startswith("//")


ALWAYS = ("/healthz", "/readyz")
TICKS = "/healthz/ticks"


def test_a_probe_answers_head_as_get_without_a_body(site: Web) -> None:
    client = site.client(role=None)

    before = {path: client.head(path) for path in (*ALWAYS, TICKS)}
    tick(site)

    assert [one.status_code for one in before.values()] == [204, 204, 503]
    assert client.head(TICKS).status_code == 204
    assert before[TICKS].content == b""
    assert before[TICKS].headers["content-type"] == "application/problem+json"
    assert client.post("/healthz").headers["allow"] == "GET, HEAD"


PATHS = ("/sign-in", "/jobs/0123456789ab/complete", "/api/actions", "/api/apps/shop", "/nothing")


@pytest.mark.parametrize("token", ["", "Authorization: Bearer {token}\r\n"], ids=["", "token"])
def test_no_aborted_request_logs_a_traceback(
    site: Web, caplog: pytest.LogCaptureFixture, token: str
) -> None:
    caplog.set_level(logging.INFO)
    own, address = token.format(token=site.token()), urlsplit(site.url)
    bodies = {"Content-Length: 100": "token=x", "Transfer-Encoding: chunked": "5\r\ntoken"}

    for method, path, length in product(("POST", "PUT"), PATHS, bodies):
        form = "Content-Type: application/x-www-form-urlencoded\r\n" if path == "/sign-in" else ""
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\n{own}{form}{length}"
        with socket.create_connection((address.hostname, address.port), timeout=10) as opened:
            opened.sendall(f"{head}\r\n\r\n{bodies[length]}".encode())

    assert site.client().get("/healthz").status_code in {200, 204}
    assert not [one for one in caplog.records if one.exc_info or one.levelno >= logging.ERROR]


JSON = {"Content-Type": "application/json"}
HALVES = (
    *(("subject", "{{ '\\ud800' }}"), ("text", "{{ '\\udc80' }}"), ("text", "\ud800")),
    ("html", "{{ app.name ~ '\\ud800' }}"),
)


def test_a_template_that_makes_half_a_character_is_refused(web: Web) -> None:
    editor = web.client(Role.EDITOR)

    for part, text in HALVES:
        templates = {"t": {"subject": "s", "text": "t", part: text}}
        document = json.dumps({"name": APP, "templates": templates})
        answer = editor.put(f"/api/apps/{APP}", content=document, headers={"If-Match": "*"})
        assert answer.status_code == 422, answer.text
        assert "templates.t" in answer.json()["detail"]

    assert editor.get(f"/api/apps/{APP}/templates").status_code == 200


def test_a_queue_that_cannot_be_printed_is_refused(web: Web) -> None:
    for text in ("\ud800", "a\u202eb", "a\nb"):
        given = json.dumps({"queues": [text]})
        answer = web.client().patch(f"/api/apps/{APP}/trust", content=given, headers=JSON)
        assert answer.status_code == 409, answer.text
        assert "write one that can be printed" in answer.json()["detail"]
