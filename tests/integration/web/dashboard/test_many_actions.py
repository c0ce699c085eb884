"""Several actions from the list: those selected, or all that the filter admits."""

import re
from typing import Any

import httpx
import pytest

from models.roles import Role
from tests.factories import make_action
from tests.integration.web.conftest import Web


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
