"""The status of a small app for people without an account: what it shows, and nothing else."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from playwright.sync_api import expect

from data import endpoints
from models.tables import action_cursor
from services.apps import changes
from tests.browser import Chromium
from tests.integration.web.conftest import APP, Web
from tests.integration.web.refreshes import DOMAINS, LONG_S, Refreshed
from tests.statements import executed

SEVEN = datetime(2027, 1, 4, 7, tzinfo=UTC)
KEYS = {
    "data_updated_at",
    "next_run_at",
    "is_running",
    "blocking_maintenance",
    "eta_s",
    "is_longer_than_usual",
}
HEADERS = {
    "content-security-policy",
    "referrer-policy",
    "x-content-type-options",
}
PATHS = ("/status/{}.json", "/status/{}")


def applied(web: Web, **keys: Any) -> None:
    """Let the document of the small app say this."""
    changes.apply(web.opened, [("", {"name": APP, **keys})], dry_run=False)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "KEPT_S", 0.0)


@pytest.fixture
def stranger(web: Web) -> httpx.Client:
    """A client without an account."""
    return web.client(role=None)


@pytest.mark.usefixtures("at_once")
def test_it_shows_how_fresh_the_data_are_and_nothing_else(
    web: Web, stranger: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    refreshed = Refreshed(web, monkeypatch)
    hidden = {"title": "Secret", "owner": "them", "settings": {"a": "hidden"}}
    applied(web, domains=DOMAINS, public_status="true", **hidden)
    with web.engine.begin() as connection:
        connection.execute(sa.update(action_cursor).values(next_occurrence_at=SEVEN))

    assert set(stranger.get(f"/status/{APP}.json").json()) == KEYS

    with refreshed.running() as (importing, _moving):
        assert importing.reached.wait(LONG_S)
        found = stranger.get(f"/status/{APP}.json").json()
        page = stranger.get(f"/status/{APP}").text

        assert (found["is_running"], found["blocking_maintenance"]) == (True, True)
        assert "The data are changing." in page
    found = stranger.get(f"/status/{APP}.json").json()
    page = stranger.get(f"/status/{APP}").text

    assert (found["is_running"], found["blocking_maintenance"]) == (False, False)
    assert found["data_updated_at"] is not None
    assert found["next_run_at"] == "2027-01-04T07:00:00Z"
    assert "The data are up to date." in page
    for secret in ("orders", "update", "Secret", "them", "hidden", "/sign-in", "/operations"):
        assert f">{secret}" not in page
        assert f'"{secret}' not in page


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.usefixtures("at_once")
def test_what_is_unknown_and_what_is_not_public_answer_alike(
    web: Web, stranger: httpx.Client, path: str
) -> None:
    answers = []
    names = [APP, "nobody", "x%00y", "..", "%F0%9F%92%A9", "A" * 500]
    for keys in ({}, {"public_status": "false"}):
        applied(web, **keys)
        answers += [stranger.get(path.format(name)) for name in names]
    gone = [stranger.get(path.format(name)) for name in ("default", "deleted")]
    answers = [one for one in (*answers, *gone) if one.url.path.startswith("/status/")]

    assert {one.status_code for one in answers} == {404}
    assert len({one.text for one in answers}) == 1
    assert len({str(sorted(_plain(one).items())) for one in answers}) == 1
    assert APP not in answers[0].text.replace("/status/shop", "")


def _plain(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name != "date"}


@pytest.mark.parametrize("path", PATHS)
def test_answers_have_the_headers_of_all_others_and_may_be_kept_for_a_second(
    web: Web, stranger: httpx.Client, path: str
) -> None:
    applied(web, public_status=True)

    answer = stranger.get(path.format(APP))

    assert answer.status_code == 200
    assert set(answer.headers) >= HEADERS
    assert answer.headers["cache-control"] == "public, max-age=1"
    assert "set-cookie" not in answer.headers
    assert stranger.head(f"/status/{APP}.json").status_code == 200


def test_any_number_of_visitors_cost_a_read_a_second(
    web: Web, stranger: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "KEPT_S", 3_600.0)
    applied(web, public_status=True)
    stranger.get(f"/status/{APP}.json")
    stranger.get("/status/nobody.json")

    with executed(web.engine) as statements:
        for path in PATHS * 20:
            stranger.get(path.format(APP))
            stranger.get(path.format("nobody"))

    assert statements == []


def test_a_browser_sees_the_update_come_and_go(
    chromium: Chromium, site: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    refreshed = Refreshed(site, monkeypatch)
    applied(site, domains=DOMAINS, public_status=True)
    with chromium.blank(400) as page:
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        with refreshed.running() as (importing, _moving):
            assert importing.reached.wait(LONG_S)
            page.goto(f"{site.url}/status/{APP}")
            expect(page.locator("main")).to_contain_text("The data are changing.")
        expect(page.locator("main")).to_contain_text("up to date", timeout=30_000)
        expect(page.locator("main")).to_contain_text("Data updated")

    assert faults == []
