"""The status of a small app's data, for who polls it and for the public, while it is refreshed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event, Thread
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from playwright.sync_api import expect

from data import endpoints, snapshots
from data.settings import settings_in
from data.steps.publish import work as publishing
from models.roles import Role
from models.tables import action_cursor
from services import changes
from services.apps import changes as app_changes
from services.apps import trust
from services.runs import run
from tasks.execute import run_attempt
from tasks.registry import Registry
from tests.browser import Chromium
from tests.integration.web.conftest import APP, Web
from tests.polling_page import ACTIVE_S, IDLE_S, PollingPage
from tests.statements import executed
from tests.transactions import execute

LONG_S = 30.0
DOMAINS = {name: {"source": {"file": f"{name}.csv"}} for name in ("orders", "shops")}
UPDATE = {
    "name": "update",
    "when": {"cron_rule": "0 3 * * *"},
    "operations": {"refresh": True, "publish": {"data": True}},
    "policy": {"expected": "PT2M"},
}


@dataclass
class Gate:
    """A place that a run reaches, and passes when it may."""

    reached: Event = field(default_factory=Event)
    may_pass: Event = field(default_factory=Event)

    def before(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def gated(*given: Any, **named: Any) -> Any:
            self.reached.set()
            assert self.may_pass.wait(LONG_S)
            return act(*given, **named)

        return gated


@dataclass
class Refreshed:
    """A small app whose action refreshes two files and publishes them."""

    web: Web
    patch: pytest.MonkeyPatch

    def __post_init__(self) -> None:
        opened = self.web.opened
        self.root = settings_in(opened.settings).effective_data_root
        self.root.mkdir(parents=True, exist_ok=True)
        trust.trust_app(opened, APP, trust.TrustChange(trusted=True))
        applied(self.web, domains=DOMAINS)
        changes.add(self.web.shop, [UPDATE])
        for name in DOMAINS:
            (self.root / f"{name}.csv").write_text("id\n0\n")

    @contextmanager
    def running(self) -> Iterator[tuple[Gate, Gate]]:
        """Run the action in a thread; yield its gates before an import and the publish."""
        importing, moving = Gate(), Gate()
        settings = self.web.opened.settings
        with self.patch.context() as patch:
            patch.setattr(snapshots, "write", importing.before(snapshots.write))
            patch.setattr(publishing, "_publish", moving.before(publishing._publish))
            its = (run(self.web.shop, "update").id, 1)
            given = (self.web.engine, settings, Registry(), its, "tests")
            thread = Thread(target=run_attempt, args=given)
            thread.start()
            try:
                yield importing, moving
            finally:
                importing.may_pass.set()
                moving.may_pass.set()
                thread.join(LONG_S)
        assert not thread.is_alive()


def applied(web: Web, **keys: Any) -> None:
    """Let the document of the small app say this."""
    app_changes.apply(web.opened, [("", {"name": APP, **keys})], dry_run=False)


@pytest.fixture
def refreshed(web: Web, monkeypatch: pytest.MonkeyPatch) -> Refreshed:
    return Refreshed(web, monkeypatch)


@pytest.fixture
def page(web: Web) -> PollingPage:
    return PollingPage(web.client(Role.VIEWER, APP), APP)


def ran(refreshed: Refreshed) -> None:
    with refreshed.running():
        pass


def test_a_complete_run_covers_the_data_while_it_changes_them(
    refreshed: Refreshed, page: PollingPage
) -> None:
    assert page.overlay() == ("empty", None, False)

    with refreshed.running() as (importing, moving):
        assert importing.reached.wait(LONG_S)
        assert page.overlay() == ("running", "import", True)
        assert page.shown["message"] == "import orders"
        assert page.shown["started_at"] is not None
        importing.may_pass.set()
        assert moving.reached.wait(LONG_S)
        assert page.overlay() == ("running", "publish", True)
        assert page.shown["data_updated_at"] is None

    assert page.overlay() == ("ready", None, False)
    assert page.shown["run_type"] == "complete"
    assert page.shown["rewritten"] == list(DOMAINS)
    assert page.shown["data_updated_at"] is not None
    assert page.passed_s == 2 * IDLE_S + 2 * ACTIVE_S


def test_a_cached_run_covers_nothing_but_the_move(refreshed: Refreshed, page: PollingPage) -> None:
    ran(refreshed)
    before = page.poll()

    with refreshed.running() as (importing, moving):
        assert moving.reached.wait(LONG_S)
        assert page.overlay() == ("running", "publish", True)
        assert not importing.reached.is_set()

    assert page.overlay() == ("ready", None, False)
    assert (page.shown["run_type"], page.shown["reused"]) == ("cached", list(DOMAINS))
    assert page.shown["data_updated_at"] == before["data_updated_at"]


def test_a_lost_snapshot_is_imported_again(refreshed: Refreshed, page: PollingPage) -> None:
    ran(refreshed)
    snapshots = refreshed.web.opened.settings.home / "snapshots" / APP / "shops"
    for file in snapshots.rglob("*.*"):
        file.unlink()

    with refreshed.running() as (importing, _moving):
        assert importing.reached.wait(LONG_S)
        assert page.overlay() == ("running", "import", True)
        assert page.shown["message"] == "import shops"

    assert page.overlay() == ("ready", None, False)
    assert (page.shown["run_type"], page.shown["rewritten"]) == ("bootstrap", ["shops"])


def test_a_failed_run_uncovers_the_data_that_were(refreshed: Refreshed, page: PollingPage) -> None:
    ran(refreshed)
    before = page.poll()
    for name in DOMAINS:
        (refreshed.root / f"{name}.csv").unlink()

    ran(refreshed)

    assert page.overlay() == ("failed", None, False)
    assert "orders" in page.shown["last_error"]
    assert page.shown["data_updated_at"] == before["data_updated_at"]
    assert (page.shown["started_at"], page.shown["eta_s"]) == (None, None)


SEVEN = datetime(2027, 1, 4, 7, tzinfo=UTC)
KEYS = {
    "data_updated_at",
    "next_run_at",
    "is_running",
    "blocking_maintenance",
    "eta_s",
    "is_longer_than_usual",
}
HEADERS = {"content-security-policy", "referrer-policy", "x-content-type-options"}
PATHS = ("/status/{}.json", "/status/{}")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "KEPT_S", 0.0)


@pytest.fixture
def stranger(web: Web) -> httpx.Client:
    """A client without an account."""
    return web.client(role=None)


@pytest.mark.usefixtures("at_once")
def test_it_shows_how_fresh_the_data_are_and_nothing_else(
    web: Web, stranger: httpx.Client, refreshed: Refreshed
) -> None:
    hidden = {"title": "Secret", "owner": "them", "settings": {"a": "hidden"}}
    applied(web, domains=DOMAINS, public_status="true", **hidden)
    execute(web.engine, sa.update(action_cursor).values(next_occurrence_at=SEVEN))

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
    headers = [{**one.headers, "date": ""} for one in answers]
    assert headers == headers[:1] * len(answers)
    assert APP not in answers[0].text.replace("/status/shop", "")


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
