"""Everything, a queue or a small app is paused from the pages; a banner says so until it ends."""

import httpx
import pytest
from playwright.sync_api import Page, expect

from models.roles import Role
from services.status import pauses
from tests.browser import Tab
from tests.integration.web.conftest import APP, Web
from tests.integration.web.dashboard.conftest import Browse


@pytest.mark.parametrize("opens", [{"width": 390}], ids=["phone"])
def test_everything_is_paused_and_resumed_from_the_head(tab: Tab, page: Page) -> None:
    page.goto("/actions")
    page.click(".top .menu summary")
    expect(page.locator(".menu select")).to_be_in_viewport()
    assert (tab.lost(), tab.is_wider_than_the_screen(), tab.serious()) == ([], False, [])
    page.select_option(".menu select", "PT4H")
    page.click(".menu button")
    expect(page.locator(".notice.warn")).to_contain_text("Everything is paused until in 3 h")
    page.goto("/operations")
    expect(page.locator(".notice.warn")).to_be_visible()
    assert (tab.lost(), tab.is_wider_than_the_screen(), tab.serious()) == ([], False, [])
    page.click(".notice.warn >> text=Resume")
    expect(page.locator(".notice.warn")).to_have_count(0)


def test_a_queue_and_a_small_app_are_paused_and_one_of_them_resumed(
    site: Web, browser: httpx.Client
) -> None:
    browser.post("/pause", data={"queue": "celery"})
    browser.post(f"/apps/{APP}/pause")
    page = browser.get(f"/apps/{APP}").text
    browser.post(f"/apps/{APP}/resume")

    assert "Queue celery is paused" in page
    assert f"Small app {APP} is paused" in page
    assert [one.name for one in pauses.list_pauses(site.opened).root] == ["celery"]


def test_a_session_of_a_small_app_pauses_and_sees_its_own_alone(site: Web, browse: Browse) -> None:
    pauses.pause(site.opened, "quick")
    own = browse(site, Role.OPERATOR, APP)

    everything = own.post("/pause", data={"span": "PT1H"})
    queue = own.post("/pause", data={"queue": "quick"})
    mine = own.post(f"/apps/{APP}/pause")
    page = own.get("/actions").text

    assert (everything.status_code, queue.status_code, mine.status_code) == (403, 403, 303)
    assert f"Small app {APP} is paused" in page
    assert "minutebook.quick" not in page
    assert "Pause everything" not in page


def test_a_viewer_sees_the_banner_without_a_button(site: Web, browse: Browse) -> None:
    pauses.pause(site.opened, "quick", reason="a migration")

    page = browse(site, Role.VIEWER).get("/actions").text

    assert "Queue minutebook.quick is paused" in page
    assert "a migration" in page
    assert ">Resume<" not in page
