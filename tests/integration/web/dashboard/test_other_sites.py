"""What pages of other sites cannot do with a visitor's session: each browser's way of saying so."""

from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest
from playwright.sync_api import Page, expect

from models.roles import Role
from runtime.config import Settings
from services.tokens import sessions
from tests import browser as chromium
from tests.integration.web.conftest import APP, Serve, Web
from tests.integration.web.dashboard.conftest import Browse

PAUSE = f"/apps/{APP}/actions/nightly/pause"
WAYS = [
    pytest.param({"Sec-Fetch-Site": "same-origin"}, 303, id="own_page"),
    pytest.param({"Sec-Fetch-Site": "none"}, 303, id="typed_by_a_person"),
    pytest.param({"Sec-Fetch-Site": "same-site"}, 403, id="a_sister_domain"),
    pytest.param({"Sec-Fetch-Site": "cross-site"}, 403, id="another_site"),
    pytest.param({"Sec-Fetch-Site": ""}, 403, id="a_word_of_no_browser"),
    # No page can set the header, but its origin is seen through a proxy that says less.
    pytest.param(
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://cron.example"}, 303, id="proxied"
    ),
    pytest.param({"Sec-Fetch-Site": "cross-site", "Origin": "{own}"}, 403, id="two_words"),
    pytest.param({"Origin": "{own}"}, 303, id="old_own_page"),
    pytest.param({"Origin": "https://evil.example"}, 403, id="old_another_site"),
    pytest.param({"Origin": "http://127.0.0.1:1"}, 403, id="old_another_port"),
    pytest.param({"Origin": "https{own_host}"}, 403, id="old_another_scheme"),
    pytest.param({"Origin": "{own}.evil.example"}, 403, id="old_longer_name"),
    pytest.param({"Origin": "null"}, 403, id="old_sandbox"),
    pytest.param({"Origin": "null", "Referer": "{own}/"}, 403, id="old_sandbox_with_referer"),
    pytest.param({"Referer": "{own}/actions?q=a"}, 303, id="only_own_referer"),
    pytest.param({"Referer": "https://evil.example/?{own}/"}, 403, id="only_another_referer"),
    pytest.param({"Referer": ""}, 403, id="empty_referer"),
    pytest.param({"Origin": "", "Referer": ""}, 403, id="empty_origin"),
    pytest.param({}, 403, id="nothing"),
]


@pytest.mark.parametrize(("headers", "status"), WAYS)
def test_a_change_comes_from_a_page_of_ours(
    web_on_sqlite: Web, browse: Browse, headers: dict[str, str], status: int
) -> None:
    web, browser = web_on_sqlite, browse(web_on_sqlite)
    link = sessions.make_link(web.opened, Role.ADMIN).url.rpartition("/")[2]
    host = web.url.removeprefix("http")
    sent = {name: text.format(own=web.url, own_host=host) for name, text in headers.items()}
    fresh = browse(web, role=None)
    for one in (browser, fresh):
        del one.headers["Sec-Fetch-Site"]

    answers = [
        browser.post(PAUSE, headers=sent),
        browser.post("/sign-out", headers=sent),
        # Nor does it sign someone in as somebody else.
        fresh.post("/sign-in", data={"token": web.token()}, headers=sent),
        fresh.post(f"/sign-in/{link}", headers=sent),
    ]

    assert [one.status_code for one in answers] == [status] * 4
    assert is_active(web) is (status == 403)


@pytest.mark.parametrize(
    ("differs", "said", "origin"),
    [
        pytest.param(
            {"proxies": ("127.0.0.1",)},
            {"Host": "cron.example", "X-Forwarded-Proto": "https"},
            "https://cron.example",
            id="a_proxy_with_tls",
        ),
        pytest.param(
            {"public_url": "https://cron.example:8443/mb", "root_path": "/mb"},
            {},
            "https://cron.example:8443",
            id="a_proxy_that_hides_the_host",
        ),
        pytest.param(
            {"public_url": "https://Cron.Example:443"},
            {},
            "https://cron.example",
            id="an_address_as_a_person_writes_it",
        ),
    ],
)
def test_an_old_browser_behind_a_proxy_is_known_by_the_address_that_it_asked(
    home_of: Callable[[str], Settings],
    serve: Serve,
    differs: dict[str, object],
    said: dict[str, str],
    origin: str,
) -> None:
    settings = home_of("sqlite")
    web = serve(settings.model_copy(update={"web": settings.web.model_copy(update=differs)}))

    def sign_in(origin: str) -> int:
        form, headers = {"token": web.token()}, {**said, "Origin": origin}
        return httpx.post(f"{web.url}/sign-in", data=form, headers=headers).status_code

    assert [sign_in(origin), sign_in("https://evil.example")] == [303, 403]


@pytest.fixture
def elsewhere(web_on_sqlite: Web, tmp_path: Path) -> Iterator[str]:
    """A site at another port: its cookies are those of ours, and its pages are not."""
    form = f'<form method="post" action="{web_on_sqlite.url}{PAUSE}"><button>Win</button></form>'
    (tmp_path / "index.html").write_text(form)
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_a_page_of_another_origin_changes_nothing_in_chromium(
    web_on_sqlite: Web, elsewhere: str
) -> None:
    web = web_on_sqlite
    with chromium.started() as found, found.tab(web.url, web.token()) as tab:
        page = tab.page
        page.goto(elsewhere)
        with page.expect_response(f"{web.url}{PAUSE}") as fetched:
            fetch(page, f"{web.url}{PAUSE}")
        with page.expect_response(f"{web.url}{PAUSE}") as posted:
            page.click("text=Win")
        expect(page.locator(".error")).to_contain_text("comes from a page of another site")
        # The browser did send the cookie.
        assert "mb_session=" in posted.value.request.all_headers()["cookie"]
        assert (fetched.value.status, is_active(web)) == (403, True)

        page.goto(f"/apps/{APP}/actions/nightly")
        page.click("main button:text-is('Pause')")
        expect(page.locator(".notice")).to_be_visible()

    assert not is_active(web)


def fetch(page: Page, url: str) -> None:
    """Send a change by a script, with the cookies of its site."""
    asks = '{method: "POST", mode: "no-cors", credentials: "include"}'
    page.evaluate(f"url => fetch(url, {asks})", url)


def is_active(web: Web) -> bool:
    found = web.client().get("/api/actions/nightly", params={"app": APP}).json()
    return bool(found["active"])
