"""The page of an action, what it says, and what is not lost: a deleted past; many at once."""

import re
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from models.roles import Role
from models.tables import actions
from services import changes
from tests.factories import make_action, spoil
from tests.integration.web.conftest import APP, NIGHTLY, Web
from tests.integration.web.dashboard.conftest import Browse
from tests.integration.web.test_overview import ended
from tests.ticks import DAY
from tests.transactions import act, clock_of, execute
from web.dashboard.action import ActionQuery, answers
from web.dashboard.session import Visitor

ANSWER = re.compile(r"<strong>.*?</p>")
ACTION = f"/apps/{APP}/actions/nightly"


@pytest.mark.parametrize("cookie", ["%ED%A0%80", '["Done.", 7]', "<b>"])
def test_a_strange_cookie_of_another_program_is_text(browser: httpx.Client, cookie: str) -> None:
    browser.cookies.set("mb_notice", cookie)

    page = browser.get("/actions")
    notice = page.text.partition('class="notice"')[2].partition("</div>")[0]

    assert (page.status_code, "<b>" in notice, "<form" in notice) == (200, False, False)


def test_who_may_not_backfill_makes_the_server_plan_none(unserved: Web) -> None:
    viewer = Visitor(unserved.shop, unserved.shop, Role.VIEWER, APP, is_signed_in=True)
    backwards = ActionQuery(**{"from": "2026-07-02T00:00:00Z", "to": "2026-07-01T00:00:00Z"})

    assert answers(viewer, "nightly", backwards)["fault"] == ""


def test_an_action_is_paused_and_resumed_on_its_page(browser: httpx.Client) -> None:
    paused, resumed = (
        browser.post(f"{ACTION}/{verb}", follow_redirects=True).text for verb in ("pause", "resume")
    )

    assert "Paused, until you resume it." in paused
    assert "Resumed." in resumed


def test_a_range_of_the_past_is_planned_and_started_on_the_page(
    site: Web, browser: httpx.Client
) -> None:
    today = clock_of(site.engine).date()
    asked = {"from": f"{today - 2 * DAY}T00:00", "to": f"{today - DAY}T23:00"}

    planned = browser.get(ACTION, params=asked).text
    done = browser.post(f"{ACTION}/backfill", data=asked, follow_redirects=True).text

    assert "This records 2 runs, repeats 0 and passes over 0." in planned
    assert "The backfill has started." in done
    assert '<span class="tag">active</span> 0 recorded' in done


def test_a_deleted_action_keeps_its_page_and_can_be_created_again(
    site: Web, browser: httpx.Client
) -> None:
    client = site.client()
    uid = client.get("/api/actions/nightly", params={"app": APP}).json()["uid"]

    asked = browser.post(f"{ACTION}/delete")
    deleted = browser.post(f"{ACTION}/delete", data={"sure": "1"})
    page = browser.get(deleted.headers["Location"])

    assert 'name="sure"' in asked.text
    assert f"/apps/{APP}/actions/{uid}/restore" in page.text
    assert "nightly is deleted. You can create it again here." in page.text
    assert (page.status_code, browser.get(ACTION).status_code) == (200, 404)
    assert "Its history stays; it never runs again." in page.text
    assert "Run now" not in page.text
    assert browser.post(f"/apps/{APP}/actions/{uid}/restore").status_code == 303
    made = client.get("/api/actions/nightly", params={"app": APP}).json()
    assert made["uid"] != uid
    assert made["document"]["when"]["cron_rule"] == "0 3 * * *"


def test_a_field_without_an_offset_is_read_in_the_viewers_zone(browser: httpx.Client) -> None:
    browser.cookies.set("mb_zone", "Asia/Tokyo")

    local = browser.get(ACTION, params={"at": "2026-07-01T10:00"}).text
    written = browser.get(ACTION, params={"at": "2026-07-01T03:00:00+02:00"}).text

    assert ANSWER.findall(local) == ANSWER.findall(written) != []
    assert 'value="2026-07-01T10:00:00"' in written


def test_a_quarantined_action_offers_the_revision_before_and_no_future(
    site: Web, browser: httpx.Client
) -> None:
    for description in ("second", "third"):
        changes.apply(site.shop, [{**NIGHTLY, "description": description}])
    broken = sa.update(actions).where(actions.c.name == "nightly")
    execute(site.engine, broken.values(quarantined="it cannot be read", active=False))

    page = browser.get(ACTION).text

    for shown in (page, browser.get(ACTION, params={"before": 2}).text):
        assert re.search(r'/edit\?revision=2">Restore revision 2<', shown)
    assert not re.search(r'/run"|/resume"|id="next"|id="backfill"', page)


def test_the_page_of_a_broken_document_is_shown(site: Web, browser: httpx.Client) -> None:
    broken = sa.literal('{"operations": [7], "hooks": "x"}', sa.Text)
    act(site.engine, spoil, actions.c.name == "nightly", document=broken, plan=broken)

    page = browser.get(ACTION)

    assert page.status_code == 200
    assert "Its rule cannot be read" in page.text


def test_the_page_of_an_action_names_its_steps_and_its_last_error(
    site: Web, browse: Browse
) -> None:
    web, shop = site, site.shop
    hooks = {"on_failure": [{"mail": "ann@example.com"}]}
    changes.apply(shop, [{**NIGHTLY, "owner": "billing", "hooks": hooks}])
    ended(web, "nightly", "success")
    ended(web, "nightly", "failed", error="no such host")
    failed = ended(web, "nightly", "failed", error="no such host")

    page = re.sub(r"<.*?>", " ", browse(web).get(ACTION).text.partition("<h1")[2])
    shown = " ".join(page.split())

    assert "Tidy up old history · Owner: billing" in shown
    assert "Last error, in 2 of the last 3 runs: no such host" in shown
    assert "33 % success" in shown
    assert "ann@example.com after a failure" in shown
    assert f'href="/operations/{failed}">no such host</a>' in browse(web).get(ACTION).text


def test_an_overview_without_actions_shows_three_ways_to_begin(browser: httpx.Client) -> None:
    after = browser.get("/").text
    browser.post(f"{ACTION}/delete", data={"sure": "1"})
    before = browser.get("/").text

    ways = [re.findall(r'<code id="begin-(\w+)"', page) for page in (before, after)]
    assert ways == [["create", "follow", "import"], []]
    (form,) = re.findall(r'href="([^"]*/new-action)"', before)
    assert browser.get(form).status_code == 200


def actions_of(web: Web, **filters: str) -> dict[str, str]:
    """Return the standings of the actions of `default` that are in an import, by name."""
    found = web.client(Role.VIEWER).get("/api/actions", params={"q": "import", **filters})
    return {one["name"]: one["standing"] for one in found.json()}


def said(browser: httpx.Client, **fields: Any) -> str:
    """Return the page that a change leads to, with what it did."""
    return browser.post("/actions", data=fields, follow_redirects=True).text


@pytest.fixture
def uids(site: Web) -> list[str]:
    names = ("import a", "import b", "import c")
    return [str(make_action(site.engine, name=name).uid) for name in names]


def test_the_selected_ones_are_paused_and_run_and_resumed(
    site: Web, browser: httpx.Client, uids: list[str]
) -> None:
    paused = said(browser, verb="pause", uid=uids[:2])
    standings = list(actions_of(site).values())
    ran = said(browser, verb="run", uid=uids)
    resumed = said(browser, verb="resume", uid=uids)

    assert "2 actions are paused" in paused
    assert standings == ["paused", "paused", "active"]
    assert "It runs now." in ran
    assert "2 actions are resumed." in resumed


def test_all_that_match_are_changed_after_a_question(
    site: Web, browser: httpx.Client, uids: list[str]
) -> None:
    make_action(site.engine, name="export")

    asked = browser.post("/actions?q=import", data={"verb": "delete", "uid": uids[:1], "all": "1"})
    named = re.findall(r'name="uid" value="(.*?)"', asked.text)
    done = said(browser, verb="delete", uid=named, sure="1")

    assert "Delete 3 actions?" in asked.text
    assert sorted(named) == sorted(uids)
    assert "3 actions are deleted." in done
    assert actions_of(site) == {}
    assert actions_of(site, q="export") == {"export": "active"}


def test_the_selected_ones_are_named_before_they_are_deleted(
    site: Web, browser: httpx.Client, uids: list[str]
) -> None:
    asked = browser.post("/actions", data={"verb": "delete", "uid": uids[1:]})

    assert re.findall(r'<li class="wrap">(.*?)</li>', asked.text) == ["import b", "import c"]
    assert len(actions_of(site)) == 3


def test_without_a_filter_no_action_is_chosen(site: Web, uids: list[str]) -> None:
    refused = site.client(Role.EDITOR).delete("/api/actions")

    told = "nothing chooses the actions to delete; send a filter such as owner or standing"
    assert (refused.status_code, refused.json()["detail"]) == (409, told)
    assert len(actions_of(site)) == len(uids)
