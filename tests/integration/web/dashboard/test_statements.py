"""How often pages ask the database: a page costs a bounded number of statements."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa

from tests.integration.web.conftest import APP, Web
from tests.integration.web.dashboard.conftest import Browse
from views.runs import run

MOST = 15
# These read what several commands show.
MORE = {"/apps/shop/actions/nightly/edit": 25, "/apps/shop": 28}
PAGES = (
    "/",
    "/actions",
    "/apps/shop/actions/nightly",
    "/apps/shop/actions/nightly/edit",
    "/operations?app=shop",
    "/operations/{id}",
    "/apps",
    "/apps/shop",
    "/health",
    "/sessions",
)


@contextmanager
def counted(engine: sa.Engine) -> Iterator[list[str]]:
    """Yield the statements that are executed meanwhile, apart from those of transactions."""
    found: list[str] = []

    def note(*values: Any) -> None:
        if values[2] != "BEGIN":
            found.append(values[2])

    sa.event.listen(engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        sa.event.remove(engine, "before_cursor_execute", note)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_asks_a_bounded_number_of_times(
    web_on_sqlite: Web, browse: Browse, path: str
) -> None:
    shop = web_on_sqlite.opened.for_request(APP, is_bound=True, bearer="tests")
    id = str(run(shop, "nightly").id)
    browser = browse(web_on_sqlite)
    browser.get(path.format(id=id))

    with counted(web_on_sqlite.engine) as statements:
        # Two seconds and more after the last one, an overview is made anew.
        web_on_sqlite.app.state.overviews.forget()
        answer = browser.get(path.format(id=id))

    assert answer.status_code == 200
    assert len(statements) <= MORE.get(path, MOST), "\n".join(statements)


def test_many_open_overviews_ask_no_more_often_than_one(web_on_sqlite: Web, browse: Browse) -> None:
    browser = browse(web_on_sqlite)
    live = {"HX-Request": "true"}
    browser.get("/", headers=live)

    with counted(web_on_sqlite.engine) as statements:
        for _ in range(10):
            assert browser.get("/", headers=live).status_code == 200

    # The session alone is looked up.
    assert len(statements) == 10
