"""The status of data as a page polls it: complete, cached, bootstrap and failed runs."""

import pytest

from data.settings import settings_in
from models.roles import Role
from tests.integration.web.conftest import APP, Web
from tests.integration.web.refreshes import DOMAINS, LONG_S, Refreshed
from tests.polling_page import ACTIVE_S, IDLE_S, PollingPage


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
    root = settings_in(refreshed.web.opened.settings).effective_data_root
    for name in DOMAINS:
        (root / f"{name}.csv").unlink()

    ran(refreshed)

    assert page.overlay() == ("failed", None, False)
    assert "orders" in page.shown["last_error"]
    assert page.shown["data_updated_at"] == before["data_updated_at"]
    assert (page.shown["started_at"], page.shown["eta_s"]) == (None, None)
