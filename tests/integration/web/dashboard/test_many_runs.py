"""Many runs from the list: those selected or all that match, a plan first, then exactly that."""

from html import unescape

import pytest
from playwright.sync_api import expect

from models.roles import Role
from tests.browser import Chromium
from tests.celery_messages import TASK, celery_action
from tests.factories import make_operation
from tests.integration.web.conftest import APP, Web
from tests.integration.web.dashboard.conftest import NOON, Browse, make_failed


def state_of(web: Web, id: str) -> str:
    client = web.client(Role.VIEWER)
    return str(client.get(f"/api/operations/{id}/state").json()["state"])


def test_all_failed_runs_that_match_are_retried_after_a_plan(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    ids = make_failed(web_on_sqlite, 60)
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        page.click("nav >> text=Runs")
        page.select_option("select[name=state]", "failed")
        expect(page.locator("tbody tr")).to_have_count(50)
        expect(page.locator(".chosen")).to_be_hidden()
        page.check("[data-all]")
        expect(page.locator(".chosen strong")).to_have_text("50")
        page.check("text=all that match (60)")
        page.click(".chosen >> text=Retry")
        expect(page.locator("h1")).to_have_text("Retry 60 runs?")
        assert state_of(web_on_sqlite, ids[0]) == "failed"
        page.click("text=Yes, retry 60")
        expect(page.locator(".notice span")).to_have_text("60 runs are being retried.")
        expect(page.locator("select[name=state]")).to_have_value("failed")

    assert {state_of(web_on_sqlite, id) for id in (ids[0], ids[-1])} <= {"pending", "queued"}
    assert tab.faults == []


@pytest.mark.parametrize("width", [1440, 390])
def test_selected_runs_are_changed_alone_on_any_screen(
    chromium: Chromium, web_on_sqlite: Web, width: int
) -> None:
    ids = make_failed(web_on_sqlite, 45)
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token(), width) as tab:
        page = tab.page
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

    found = [state_of(web_on_sqlite, id) for id in ids[:3]]
    assert (found[2], set(found[:2]) <= {"pending", "queued"}) == ("failed", True)
    assert tab.faults == []


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        pytest.param("/operations?state=foo", "query.state[0] 'foo'", id="state"),
        pytest.param("/operations?cause=foo", "query.cause[0] 'foo'", id="cause"),
        pytest.param("/actions?standing=foo", "query.standing 'foo'", id="standing"),
    ],
)
def test_an_unknown_word_in_an_address_is_refused(
    web_on_sqlite: Web, browse: Browse, path: str, problem: str
) -> None:
    answer = browse(web_on_sqlite).get(path)

    assert answer.status_code == 422
    assert problem in unescape(answer.text).lower()


@pytest.mark.parametrize("digits", [8, 13, 36])
def test_an_id_in_the_search_opens_its_run(web_on_sqlite: Web, browse: Browse, digits: int) -> None:
    (id,) = make_failed(web_on_sqlite, 1)
    whole, own = browse(web_on_sqlite), browse(web_on_sqlite, app=APP)

    found, theirs = (one.get("/operations", params={"q": id[:digits]}) for one in (whole, own))

    assert (found.status_code, found.headers["location"]) == (303, f"/operations/{id}")
    assert theirs.status_code == 200


@pytest.mark.parametrize("path", ["/actions", "/operations"])
def test_lists_are_of_a_task(web: Web, browse: Browse, path: str) -> None:
    make_operation(web.engine, celery_action(web.engine), NOON)
    browser = browse(web)

    pages = [browser.get(path, params={"task": task}).text for task in (TASK, TASK[1:])]

    assert ["close the day</a>" in page for page in pages] == [True, False]


def test_all_actions_that_match_are_changed_after_a_plan(
    chromium: Chromium, web_on_sqlite: Web
) -> None:
    client = web_on_sqlite.client(Role.EDITOR, APP)
    documents = [
        {"name": f"report {number:02}", "when": {"every": 3600}, "operations": {"maintenance": {}}}
        for number in range(60)
    ]
    assert client.post("/api/actions:apply", json=documents).status_code == 200
    with chromium.tab(web_on_sqlite.url, web_on_sqlite.token()) as tab:
        page = tab.page
        page.goto("/actions?q=report")
        page.check("[data-all]")
        page.check("text=all that match (60)")
        expect(page.locator(".chosen")).to_be_in_viewport()
        page.click(".chosen >> text=Pause")
        expect(page.locator("main p").first).to_have_text("Pause 60 actions?")
        page.click("text=Yes, do it")
        expect(page.locator(".notice span")).to_contain_text("60 actions are paused")

    paused = client.get("/api/actions").json()
    assert {one["standing"] for one in paused if one["name"].startswith("report")} == {"paused"}
    assert tab.faults == []
