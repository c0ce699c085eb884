"""The dashboard beside real processes: a run that moves as one looks, and a daemon that is gone."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests import browser
from tests.acceptance.installation import Installation
from tests.acceptance.web_door import start_web
from tests.browser import Chromium

SOON_MS = 60_000


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    with browser.started() as found:
        yield found


@pytest.mark.parametrize("store", ["postgresql"])
def test_a_run_is_seen_to_move_and_a_daemon_to_be_gone(
    installation: Installation, chromium: Chromium
) -> None:
    action = installation.action()
    daemon = installation.daemon()
    _, address = start_web(installation)
    token = installation.cli("token", "create", "--role", "admin")["token"]
    with chromium.tab(address, token) as tab:
        page = tab.page
        page.goto("/")
        expect(page.locator(".verdict h1")).to_have_text(
            re.compile("All is well|attention"), timeout=SOON_MS
        )
        page.goto(f"/apps/default/actions/{action.uid}")
        page.click("text=Run now")
        expect(page.locator("#live .verdict h2")).to_have_text(re.compile("Pending|Queued"))
        installation.worker(is_awaited=True)
        # Nobody reloads the page, which asks no more once the run has ended.
        expect(page.locator("#live .verdict h2")).to_have_text("Success", timeout=SOON_MS)
        expect(page.locator("#poll")).to_have_count(0)

        page.goto("/")
        daemon.kill()
        expect(page.locator(".verdict h1")).to_have_text(
            re.compile("^No daemon ticks: the last tick was by "), timeout=SOON_MS
        )

    assert tab.faults == []
