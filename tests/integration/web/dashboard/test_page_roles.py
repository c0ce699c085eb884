"""Who may open which page and change what: every page and role, the own app and another.

The page of the roles of pages has a table of what they answer.
"""

import re
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa
from fastapi.routing import APIRoute

from models.roles import PERMITS, Permission, Role
from models.tables import schema
from runtime.database import reading
from services.runs import run
from tests.integration.web.conftest import APP, Web
from tests.integration.web.dashboard.conftest import Browse
from tests.integration.web.test_roles import ROUTES as API
from tests.integration.web.test_roles import Row, accesses, name_of, permitted, row_of, table_on
from web.dashboard.mounting import pages

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "roles-of-pages.md"
PUBLIC = {"/sign-in", "/sign-in/{link}", "/static/{name}", "/status/{app}"}
ROUTES = [route for router in pages() for route in router.routes if isinstance(route, APIRoute)]
GUARDED = [route for route in ROUTES if route.path not in PUBLIC]
# What shows something comes before what changes it.
GUARDED.sort(key=lambda route: route.methods != {"GET"})
VISITORS = [role for role in Role if Permission.READ in PERMITS[role]]
# A form with too many fields changes nothing; it is read after the role.
TOO_MANY = "&" * 10_000


@pytest.fixture
def ids(site: Web) -> dict[str, str]:
    """The ids that paths ask for: those of the small app `shop`."""
    named = {"app": APP, "action": "nightly", "template": "hello", "verb": "run"}
    return {**named, "id": str(run(site.shop, "nightly").id)}


def ask(browser: httpx.Client, route: APIRoute, ids: dict[str, str], **query: str) -> int:
    """Ask for a page, or for a change that goes no further than its form."""
    (method,) = route.methods or {"?"}
    form = TOO_MANY if method == "POST" else None
    with browser.stream(method, path_of(route, ids), params=query, content=form) as answer:
        return answer.status_code


def path_of(route: APIRoute, ids: dict[str, str]) -> str:
    return re.sub(r"{(\w+)[^}]*}", lambda found: ids.get(found[1], "x"), route.path)


def test_every_page_but_the_sign_in_names_one_permission() -> None:
    assert {route.path for route in ROUTES if len(set(accesses(route))) != 1} == PUBLIC


def test_without_signing_in_no_page_opens(site: Web, browse: Browse, ids: dict[str, str]) -> None:
    browser = browse(site, role=None)

    assert {ask(browser, one, ids) for one in GUARDED} == {303}


def test_each_role_may_do_what_the_table_says(
    site: Web, browse: Browse, ids: dict[str, str]
) -> None:
    whole, own = ({role: browse(site, role, app) for role in VISITORS} for app in (None, APP))
    found: list[Row] = []
    for route in GUARDED:
        by_whole = {role: ask(one, route, ids) for role, one in whole.items()}
        by_own = {role: ask(one, route, ids) for role, one in own.items()}
        statuses = {*by_whole.values(), *by_own.values()}
        assert not statuses & {303, 401, 404, 500}, name_of(route)
        found.append(row_of(route, *(permitted(one) for one in (by_whole, by_own))))

    assert sorted(found) == table_on(PAGE)


def test_a_visitor_of_another_small_app_learns_nothing(
    site: Web, browse: Browse, ids: dict[str, str]
) -> None:
    """By the least role that may ask."""
    browsers = {role: browse(site, role, "default") for role in VISITORS}
    told: list[tuple[str, int, int]] = []
    for route in GUARDED:
        (access,) = set(accesses(route))
        if access.is_of_installation:
            continue
        browser = browsers[next(one for one in VISITORS if access.permission in PERMITS[one])]
        theirs = ask(browser, route, ids, app=APP)
        none = ask(browser, route, {**ids, "app": "nowhere"}, app="nowhere")
        if (theirs, none) != (404, 404):
            told.append((name_of(route), theirs, none))

    assert told == []
    own = browse(site, app=APP).get(f"/operations/{ids['id']}")
    assert own.status_code == 200


def stored(web: Web) -> dict[str, list[str]]:
    """Return all rows, but for when a token was used."""
    with reading(web.engine) as connection:
        return {
            table.name: sorted(
                repr([value for name, value in row.items() if name != "last_used_at"])
                for row in connection.execute(sa.select(table)).mappings()
            )
            for table in schema().sorted_tables
        }


def test_no_get_changes_anything(site: Web, browse: Browse, ids: dict[str, str]) -> None:
    browser, api = browse(site), site.client()
    before, cookies = stored(site), dict(browser.cookies)
    # What a link of another site could ask for.
    query = {"app": "default", "role": "viewer", "zone": "Asia/Tokyo", "next": "/health"}

    for route in (one for one in (*ROUTES, *API) if "GET" in (one.methods or ())):
        # A worker takes a job by it, as those of the older system do.
        if route.path == "/jobs/next":
            continue
        path = path_of(route, ids)
        client = api if route in API else browser
        for asked in ({}, query):
            assert client.get(path, params=asked).status_code != 500, path

    assert dict(browser.cookies) == cookies
    assert stored(site) == before
