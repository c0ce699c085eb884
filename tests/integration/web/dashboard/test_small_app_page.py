"""The page of a small app in a real Chromium: its data while an import runs, and its mails."""

from uuid import UUID

import httpx
import pytest
from playwright.sync_api import Page, expect

from models.tables import actions
from services.apps import changes, trust
from services.runs import run
from tests.browser import Tab
from tests.factories import spoil, update_operation
from tests.integration.web.conftest import APP, NIGHTLY, Web, begin
from tests.ticks import MINUTE
from tests.transactions import clock_of

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
    with site.opened.engine.begin() as connection:
        spoilt = '{"operations": "send_execsum"}'
        spoil(connection, actions.c.uid == UUID(broken), document=spoilt)

    page = browser.get(f"/apps/{APP}/summary")

    assert page.status_code == 200
    assert f'/apps/{APP}/actions/{uid}">b/summary</a>' in page.text
