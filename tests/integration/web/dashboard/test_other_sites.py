"""What pages of other sites cannot do with a visitor's session."""

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Page, expect

from models.roles import Role
from services.tokens import sessions
from tests.browser import Tab
from tests.integration.web.conftest import APP, Web
from tests.integration.web.dashboard.conftest import Browse

PAUSE = f"/apps/{APP}/actions/nightly/pause"


def test_each_door_of_a_browser_asks_where_a_change_comes_from(site: Web, browse: Browse) -> None:
    link = sessions.make_link(site.opened, Role.ADMIN).url.rpartition("/")[2]
    browser, fresh = browse(site), browse(site, role=None)

    def answers(sender: str) -> list[int]:
        headers = {"Sec-Fetch-Site": sender}
        sent = (
            browser.post(PAUSE, headers=headers),
            # Nor does it sign someone in as somebody else.
            fresh.post("/sign-in", data={"token": site.token()}, headers=headers),
            fresh.post(f"/sign-in/{link}", headers=headers),
            browser.post("/sign-out", headers=headers),
        )
        return [one.status_code for one in sent]

    assert (answers("cross-site"), is_active(site)) == ([403] * 4, True)
    assert (answers("same-origin"), is_active(site)) == ([303] * 4, False)


@pytest.fixture
def elsewhere(site: Web, tmp_path: Path) -> Iterator[str]:
    """A site at another port: its cookies are those of ours, and its pages are not."""
    form = f'<form method="post" action="{site.url}{PAUSE}"><button>Win</button></form>'
    (tmp_path / "index.html").write_text(form)
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_a_page_of_another_origin_changes_nothing_in_chromium(
    tab: Tab, page: Page, site: Web, elsewhere: str
) -> None:
    page.goto(elsewhere)
    with page.expect_response(f"{site.url}{PAUSE}") as fetched:
        fetch(page, f"{site.url}{PAUSE}")
    with page.expect_response(f"{site.url}{PAUSE}") as posted:
        page.click("text=Win")
    expect(page.locator(".error")).to_contain_text("comes from a page of another site")
    # The browser did send the cookie.
    assert "mb_session=" in posted.value.request.all_headers()["cookie"]
    assert (fetched.value.status, is_active(site)) == (403, True)

    page.goto(f"/apps/{APP}/actions/nightly")
    page.click("main button:text-is('Pause')")
    expect(page.locator(".notice")).to_be_visible()
    assert not is_active(site)
    # The console has a line for each refusal.
    tab.faults.clear()


def fetch(page: Page, url: str) -> None:
    """Send a change by a script, with the cookies of its site."""
    asks = '{method: "POST", mode: "no-cors", credentials: "include"}'
    page.evaluate(f"url => fetch(url, {asks})", url)


def is_active(web: Web) -> bool:
    found = web.client().get("/api/actions/nightly", params={"app": APP}).json()
    return bool(found["active"])
