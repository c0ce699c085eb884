"""How often pages ask the database: a page costs a bounded number of statements."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from fastapi.routing import APIRoute

from models.store import ticks
from models.tables import actions
from services import changes, users
from services.apps import changes as app_changes
from services.runs import run
from tests.factories import update_operation
from tests.integration.web.conftest import APP, NIGHTLY, SiteWith, Web
from tests.integration.web.dashboard.conftest import Browse
from tests.integration.web.test_overview import ended, tick
from tests.statements import executed, rows_read
from tests.transactions import act, execute
from web.dashboard.mounting import pages

MOST = 16
# What a verdict asks.
VERDICT = 6
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
TEMPLATE = {"text": "Hello {{ recipient.name }}", "subject": "Hello", "html": "<p>Hello</p>"}
# Each page of the dashboard, as a browser asks for it; the addresses that it continues with too.
PAGES = {
    "/": "/",
    "/actions": "/actions",
    "/apps/{app}/actions/{action}": "/apps/shop/actions/nightly",
    "/apps/{app}/actions/{action}/edit": "/apps/shop/actions/nightly/edit",
    "/apps/{app}/new-action": "/apps/shop/new-action",
    "/operations": "/operations",
    "/operations/{id}": "/operations/{id}",
    "/apps": "/apps",
    "/apps/{app}": "/apps/shop",
    "/apps/{app}/templates/{template}": "/apps/shop/templates/hello",
    "/apps/{app}/templates/{template}/html": "/apps/shop/templates/hello/html",
    "/apps/{app}/summary": "/apps/shop/summary",
    "/apps/{app}/summary/html": "/apps/shop/summary/html",
    "/health": "/health",
    "/account": "/account",
    "/invite": "/invite",
    "/sign-in": "/sign-in",
    "/sign-in/{link}": "/sign-in/mbl_0",
    "/static/{name}": "/static/icon.svg",
    "/status/{app}": "/status/shop",
}
# Another address of a page above.
ALSO = {"/apps/{app}/store"}


def number_of(engine: sa.Engine, statements: Sequence[str]) -> int:
    """Return how many statements there were.

    SQLite, in this process, is asked for each row what PostgreSQL answers at once.
    """
    is_remote = engine.dialect.name == "postgresql"
    return len(statements) if is_remote else len(set(statements))


def test_every_page_is_counted(site: Web) -> None:
    found = {
        route.path
        for router in pages()
        for route in router.routes
        if isinstance(route, APIRoute) and "GET" in (route.methods or ())
    }

    assert found == PAGES.keys() | ALSO


def test_no_page_asks_more_often_the_more_there_is(web: Web, browse: Browse) -> None:
    opened = web.opened
    apps: list[dict[str, Any]] = [{"name": f"other-{number}"} for number in range(9)]
    apps.append({"name": APP, "public_status": True, "templates": {"hello": TEMPLATE}})
    app_changes.apply(opened, [("", one) for one in apps], dry_run=False)
    changes.add(web.shop, [{**NIGHTLY, "name": f"action {number}"} for number in range(9)])
    id, *_ = [str(run(web.shop, f"action {number}").id) for number in range(9)]
    browser = browse(web)
    asked: dict[str, int] = {}

    for path in PAGES.values():
        browser.get(path.format(id=id))
        # Two seconds and more after the last one, an overview is made anew.
        web.app.state.overviews.forget()
        # What is paused is read once in two seconds, whatever the pages are: on a slow machine,
        # by one that is counted.
        web.app.state.pauses.of(opened, 0.0)
        with executed(web.engine) as statements:
            assert browser.get(path.format(id=id)).status_code in {200, 303}
        asked[path] = number_of(web.engine, statements)

    # Beside their own parts they have those of the verdict.
    for path in ("/", "/apps/shop"):
        assert asked.pop(path) <= MOST + VERDICT, asked
    assert max(asked.values()) <= MOST, asked


def test_an_overview_of_every_trouble_asks_no_more_often(web: Web, browse: Browse) -> None:
    names = ("runs", "failed", "waits", "broken", "soon")
    often = {**NIGHTLY, "when": {"every": 600}}
    changes.add(web.shop, [{**often, "name": name} for name in names])
    tick(web)
    act(web.engine, ticks.daemon_stopped, "here:1")
    broken = sa.update(actions).where(actions.c.name == "broken")
    execute(web.engine, broken.values(quarantined="it cannot be read"))
    ended(web, "runs", "running")
    ended(web, "failed", "failed", error="no")
    waits = run(web.shop, "waits").id
    update_operation(web.engine, waits, cause="schedule", recorded_at=LONG_AGO)
    browser = browse(web)
    browser.get("/")
    web.app.state.overviews.forget()

    with executed(web.engine) as statements:
        page = browser.get("/").text

    assert all(name in page for name in names)
    assert number_of(web.engine, statements) <= MOST + VERDICT


def test_many_open_overviews_ask_no_more_often_than_one(site: Web, browser: httpx.Client) -> None:
    live = {"HX-Request": "true"}
    browser.get("/", headers=live)

    with executed(site.engine) as statements:
        for _ in range(10):
            assert browser.get("/", headers=live).status_code == 200

    # The token alone is looked up.
    assert len(statements) == 10


def test_the_page_of_a_small_app_shows_a_page_of_its_users(
    site_with: SiteWith, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = site_with("postgresql")
    rows = [{"id": f"user-{number}@example.com"} for number in range(7)]
    users.import_rows(web.shop, rows, raises_events=False)
    browser = browse(web)
    monkeypatch.setattr("web.dashboard.apps.MOST_PEOPLE", 3)

    with rows_read(web.engine) as read:
        first = browser.get(f"/apps/{APP}").text
    second = browser.get(f"/apps/{APP}", params={"users_after": "user-1@example.com"}).text

    assert max(read) == 4
    assert "8 people" in first
    assert ("user-1@" in first, "user-2@" in first) == (True, False)
    assert f"/apps/{APP}?users_after=user-1%40example.com" in first
    assert ("user-1@" in second, "user-2@" in second) == (False, True)
