"""Several actions or runs from the list: those selected, or all that the filter admits."""

import re
from typing import Any

import httpx
import pytest

from models.roles import Role
from tests.factories import make_action
from tests.integration.web.conftest import APP, Web
from tests.integration.web.dashboard.conftest import Browse, make_failed


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


def state_of(web: Web, id: str) -> str:
    client = web.client(Role.VIEWER)
    return str(client.get(f"/api/operations/{id}/state").json()["state"])


@pytest.mark.parametrize(("more", "count"), [({}, 2), ({"all": "1"}, 3)], ids=["some", "all"])
def test_runs_are_retried_after_a_plan_and_no_others(
    site: Web, browser: httpx.Client, more: dict[str, str], count: int
) -> None:
    ids = make_failed(site, 3)
    path, form = "/operations?state=failed", {"verb": "retry"}

    asked = browser.post(path, data={**form, "id": ids[:2], **more})
    planned = re.findall(r'name="id" value="(.*?)"', asked.text)
    before = state_of(site, ids[0])
    done = browser.post(path, data={**form, "id": planned, "sure": "1"}, follow_redirects=True)

    assert f"Retry {count} runs?" in asked.text
    assert (before, sorted(planned)) == ("failed", sorted(ids[:count]))
    assert f"{count} runs are being retried." in done.text
    assert [state_of(site, id) for id in ids[count:]] == ["failed"] * (3 - count)


@pytest.mark.parametrize("digits", [8, 36])
def test_an_id_in_the_search_opens_its_run(site: Web, browse: Browse, digits: int) -> None:
    (id,) = make_failed(site, 1)
    whole, own = browse(site), browse(site, app=APP)

    found, theirs = (one.get("/operations", params={"q": id[:digits]}) for one in (whole, own))

    assert (found.status_code, found.headers["location"]) == (303, f"/operations/{id}")
    assert theirs.status_code == 200
