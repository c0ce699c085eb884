"""A real Chromium for the tests of pages."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, Route, expect, sync_playwright

# A test proves what is right, not how fast this machine is.
expect.set_options(timeout=60_000)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# It talks to the server under test alone.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
# What a browser says of a form on one of our own pages.
OWN_PAGE = {"Sec-Fetch-Site": "same-origin"}
SERIOUS = {"serious", "critical"}
# In a chart all is drawn to scale; what only a screen reader reads takes no room.
CUT_OFF = """
() => [...document.querySelectorAll("body *")]
  .filter((one) => !one.closest(".sr, svg, iframe, input") && one.checkVisibility())
  .filter((one) => ["hidden", "clip"].includes(getComputedStyle(one).overflowX))
  .filter((one) => one.scrollWidth > one.clientWidth + 1)
  .map((one) => [location.pathname, one.scrollWidth, one.clientWidth, one.outerHTML.slice(0, 200)])
  .map((one) => one.join(" "))
"""


def chromium_path() -> str:
    """Return the path of a Chromium; without one, skip the test, or fail where it must be there."""
    named = os.environ.get("CHROMIUM_PATH", "")
    found = named or next((path for name in NAMES if (path := shutil.which(name))), None)
    if found:
        return found
    if os.environ.get("TESTS_NEED_CHROMIUM"):
        pytest.fail("no Chromium: install Debian's package chromium, or set CHROMIUM_PATH")
    pytest.skip("no Chromium; set CHROMIUM_PATH, or install one")


@dataclass
class Tab:
    """A page of a browser, and what went wrong in it."""

    page: Page
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", self._hear)
        self.page.on("dialog", self._meet)

    def _hear(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.faults.append(f"{self.page.url}: {message.text}")

    def _meet(self, dialog: Any) -> None:
        # What asks before a change is ours; `alert` could only be a script that broke in.
        if dialog.type == "alert":
            self.faults.append(f"alert: {dialog.message}")
        dialog.accept()

    def serious(self, *rules: str) -> list[str]:
        """Return what axe-core finds, by these rules or all, that keeps people from the page."""
        options = {"runOnly": list(rules)} if rules else None
        found = Axe().run(self.page, options=options).response["violations"]
        return [
            f"{self.page.url} {one['id']}: {one['nodes'][0]['html'][:200]}"
            for one in found
            if one["impact"] in SERIOUS
        ]

    def is_wider_than_the_screen(self) -> bool:
        """Return whether the page must be scrolled sideways."""
        wide: bool = self.page.evaluate("document.documentElement.scrollWidth > innerWidth")
        return wide

    def lost(self) -> list[str]:
        """Return what is cut off: elements wider than they may be, which nothing scrolls."""
        found: list[str] = self.page.evaluate(CUT_OFF)
        return found


@dataclass
class Chromium:
    """A running browser."""

    _browser: Any

    @contextmanager
    def blank(self, width: int, **options: Any) -> Iterator[Page]:
        """Yield an empty page, for what no server serves."""
        size = {"width": width, "height": 900}
        context: BrowserContext = self._browser.new_context(viewport=size, **options)
        try:
            yield context.new_page()
        finally:
            context.close()

    @contextmanager
    def tab(self, base_url: str, token: str, width: int = 1440, **options: Any) -> Iterator[Tab]:
        """Yield an empty page of a browser that a token has signed in."""
        context: BrowserContext = self._browser.new_context(
            base_url=base_url,
            viewport={"width": width, "height": 900},
            timezone_id="Europe/Paris",
            **options,
        )
        context.set_default_timeout(60_000)
        try:
            signed_in = context.request.post(
                "/sign-in", form={"token": token}, headers=OWN_PAGE, max_redirects=0
            )
            assert signed_in.status == 303
            yield Tab(context.new_page())
        finally:
            context.close()


def hold_back(page: Page, pattern: str) -> list[Route]:
    """Let requests of these addresses wait; return the list to which each of them is added."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route(pattern, hold)
    return held


@contextmanager
def started() -> Iterator[Chromium]:
    """Yield a browser.

    Its driver occupies the event loop of this thread, so it must not outlive a module of tests.
    """
    path = chromium_path()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        try:
            yield Chromium(browser)
        finally:
            browser.close()
