"""Many runs from the list: those selected or all that match, a plan first, then exactly that."""

import pytest
from playwright.sync_api import Page, expect

from models.roles import Role
from tests.browser import Tab
from tests.celery_messages import TASK, celery_action
from tests.factories import make_operation
from tests.integration.web.conftest import APP, Web
from tests.integration.web.dashboard.conftest import NOON, Browse, make_failed


def state_of(web: Web, id: str) -> str:
    client = web.client(Role.VIEWER)
    return str(client.get(f"/api/operations/{id}/state").json()["state"])


def test_all_failed_runs_that_match_are_retried_after_a_plan(page: Page, site: Web) -> None:
    ids = make_failed(site, 51)
    page.goto("/operations")
    page.select_option("select[name=state]", "failed")
    expect(page.locator("tbody tr")).to_have_count(50)
    expect(page.locator(".chosen")).to_be_hidden()
    page.check("[data-all]")
    expect(page.locator(".chosen strong")).to_have_text("50")
    page.check("text=all that match (51)")
    page.click(".chosen >> text=Retry")
    expect(page.locator("h1")).to_have_text("Retry 51 runs?")
    assert state_of(site, ids[0]) == "failed"
    page.click("text=Yes, retry 51")
    expect(page.locator(".notice span")).to_have_text("51 runs are being retried.")
    expect(page.locator("select[name=state]")).to_have_value("failed")

    assert {state_of(site, id) for id in (ids[0], ids[-1])} <= {"pending", "queued"}


@pytest.mark.parametrize("opens", [{"width": 390}], ids=["phone"])
def test_selected_runs_are_changed_alone_on_any_screen(tab: Tab, page: Page, site: Web) -> None:
    ids = make_failed(site, 45)
    page.goto("/operations?state=failed")
    page.locator("[data-pick]").nth(0).check()
    page.locator("[data-pick]").nth(1).check()
    expect(page.locator(".chosen span")).to_have_text("2 selected")
    expect(page.locator(".chosen")).to_be_in_viewport()
    assert (tab.lost(), tab.is_wider_than_the_screen(), tab.serious()) == ([], False, [])
    page.click(".chosen >> text=Retry")
    expect(page.locator("h1")).to_have_text("Retry 2 runs?")
    assert (tab.lost(), tab.is_wider_than_the_screen(), tab.serious()) == ([], False, [])
    page.click("text=Yes, retry 2")
    expect(page.locator(".notice span")).to_have_text("2 runs are being retried.")

    found = [state_of(site, id) for id in ids[:3]]
    assert (found[2], set(found[:2]) <= {"pending", "queued"}) == ("failed", True)


@pytest.mark.parametrize("digits", [8, 13, 36])
def test_an_id_in_the_search_opens_its_run(site: Web, browse: Browse, digits: int) -> None:
    (id,) = make_failed(site, 1)
    whole, own = browse(site), browse(site, app=APP)

    found, theirs = (one.get("/operations", params={"q": id[:digits]}) for one in (whole, own))

    assert (found.status_code, found.headers["location"]) == (303, f"/operations/{id}")
    assert theirs.status_code == 200


@pytest.mark.parametrize("path", ["/actions", "/operations"])
def test_lists_are_of_a_task(web: Web, browse: Browse, path: str) -> None:
    make_operation(web.engine, celery_action(web.engine), NOON)
    browser = browse(web)

    pages = [browser.get(path, params={"task": task}).text for task in (TASK, TASK[1:])]

    assert ["close the day</a>" in page for page in pages] == [True, False]
