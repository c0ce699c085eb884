"""The page of a small app: its data while an import runs, its mails, and what is paused."""

from uuid import UUID

import httpx
import pytest
from playwright.sync_api import Page, expect

from models.roles import Role
from models.tables import actions
from services.apps import changes, trust
from services.runs import run
from services.status import pauses
from tests.browser import Tab
from tests.factories import spoil, update_operation
from tests.integration.web.conftest import APP, NIGHTLY, Web, begin
from tests.integration.web.dashboard.conftest import Browse
from tests.ticks import MINUTE
from tests.transactions import act, clock_of

SOURCE = {"source": {"file": "sales.csv"}}
# What the eye and the mouse meet in the middle of an element.
SEEN_AT = """
(one) => {
  const { x, y, width, height } = one.getBoundingClientRect();
  return document.elementFromPoint(x + width / 2, y + height / 2).closest(".cover, td").className;
}
"""


@pytest.mark.parametrize("opens", [{"reduced_motion": "reduce"}], ids=["still"])
def test_an_import_covers_the_data_and_traps_nobody(tab: Tab, page: Page, site: Web) -> None:
    trust.trust_app(site.opened, APP, trust.TrustChange(trusted=True))
    changes.apply(site.opened, [("", {"name": APP, "domains": {"sales": SOURCE}})], dry_run=False)
    id, now = run(site.shop, "nightly").id, clock_of(site.engine)
    shown = {"phase": "import", "is_blocking": True, "eta_at": now + MINUTE}
    steps = [{"name": "refresh", "state": "running"}]
    begin(site, id, now - MINUTE, heartbeat_at=now, **shown, steps=steps)
    page.goto(f"/apps/{APP}")
    cover, table = page.locator("details.cover"), page.locator("td.name:text-is('sales')")
    expect(cover).to_contain_text("ends in")
    assert table.evaluate(SEEN_AT) == "cover"
    assert tab.serious() == []
    page.focus("details.cover > summary")
    page.keyboard.press("Enter")
    assert table.evaluate(SEEN_AT) != "cover"
    with page.expect_response(lambda answer: "hx-request" in answer.request.headers):
        pass
    expect(cover).not_to_have_attribute("open", "")
    expect(page.locator("details.cover > summary")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("details.cover > summary")).not_to_be_focused()
    update_operation(site.engine, id, state="failed", finished_at=None)
    expect(cover).to_have_count(0, timeout=30_000)


def test_the_summary_links_its_action_whatever_its_name_and_its_neighbour(
    site: Web, browser: httpx.Client
) -> None:
    weekly = {**NIGHTLY, "operations": {"send_execsum": {}}, "recipients": {"groups": ["all"]}}
    names = ("a broken one", "b/summary")
    documents = [{**weekly, "name": name} for name in names]
    applied = site.client().post(f"/api/actions:apply?app={APP}", json=documents)
    assert applied.status_code == 200, applied.text
    broken, uid = (one["uid"] for one in applied.json())
    spoilt = '{"operations": "send_execsum"}'
    act(site.engine, spoil, actions.c.uid == UUID(broken), document=spoilt)

    page = browser.get(f"/apps/{APP}/summary")

    assert page.status_code == 200
    assert f'/apps/{APP}/actions/{uid}">b/summary</a>' in page.text


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
