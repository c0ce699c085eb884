"""The part of a small app's page that lists its users."""

from collections.abc import Callable

import pytest

from runtime.config import Settings
from services import users
from tests.integration.web.conftest import APP, Serve, with_shop
from tests.integration.web.dashboard.conftest import Browse
from tests.statements import rows_read


def test_the_page_of_a_small_app_shows_a_page_of_its_users(
    home_of: Callable[[str], Settings],
    serve: Serve,
    browse: Browse,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    web = with_shop(serve(home_of("postgresql")))
    shop = web.opened.for_request(APP, is_bound=True, bearer="tests")
    rows = [{"id": f"user-{number}@example.com"} for number in range(7)]
    users.import_rows(shop, rows, raises_events=False)
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
