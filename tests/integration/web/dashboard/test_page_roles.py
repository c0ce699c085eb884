"""Who may open which page and change what: every page and role, the own app and another.

The page of the roles of pages has a table of what they answer.
"""

import re
from collections.abc import Iterator, Mapping
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
from tests.integration.web.test_roles import Row, accesses, name_of, row_of, table_on
from web.dashboard.mounting import pages

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "roles-of-pages.md"
PUBLIC = {"/sign-in", "/sign-in/{link}", "/static/{name}", "/status/{app}"}
ROUTES = [route for router in pages() for route in router.routes if isinstance(route, APIRoute)]
GUARDED = [route for route in ROUTES if route.path not in PUBLIC]
VISITORS = [role for role in Role if Permission.READ in PERMITS[role]]
# A form with too many fields changes nothing; it is read after the role.
TOO_MANY = "&" * 10_000

Answer = tuple[int, bool]


@pytest.fixture
def ids(site: Web) -> dict[str, str]:
    """The ids that paths ask for: those of the small app `shop`."""
    named = {"app": APP, "action": "nightly", "template": "hello", "verb": "run"}
    return {**named, "id": str(run(site.shop, "nightly").id)}


def ask(browser: httpx.Client, route: APIRoute, ids: dict[str, str], **query: str) -> Answer:
    """Ask for a page, or for a change that goes no further than its form.

    Return the status, and whether the role permits it.
    """
    (method,) = route.methods or {"?"}
    path = re.sub(r"{(\w+)[^}]*}", lambda found: ids.get(found[1], "x"), route.path)
    form = TOO_MANY if method == "POST" else None
    with browser.stream(method, path, params=query, content=form) as answer:
        return answer.status_code, answer.status_code != 403


def walk() -> Iterator[APIRoute]:
    yield from (route for route in GUARDED if route.methods == {"GET"})
    yield from (route for route in GUARDED if route.methods != {"GET"})


def test_every_page_but_the_sign_in_names_one_permission() -> None:
    assert {route.path for route in ROUTES if len(set(accesses(route))) != 1} == PUBLIC


def test_without_signing_in_no_page_opens(site: Web, browse: Browse, ids: dict[str, str]) -> None:
    browser = browse(site, role=None)

    assert {name_of(one): ask(browser, one, ids)[0] for one in walk()} == {
        name_of(one): 303 for one in walk()
    }


def test_each_role_may_do_what_the_table_says(
    site: Web, browse: Browse, ids: dict[str, str]
) -> None:
    whole, own = ({role: browse(site, role, app) for role in VISITORS} for app in (None, APP))
    found: list[Row] = []
    for route in walk():
        by_whole = {role: ask(one, route, ids) for role, one in whole.items()}
        by_own = {role: ask(one, route, ids) for role, one in own.items()}
        statuses = {status for status, _ in (*by_whole.values(), *by_own.values())}
        assert not statuses & {303, 401, 404, 500}, name_of(route)
        found.append(row_of(route, *(permitted(one) for one in (by_whole, by_own))))

    assert sorted(found) == table_on(PAGE)


def permitted(answers: Mapping[Role, Answer]) -> list[Role]:
    return [role for role, (_, may) in answers.items() if may]


def test_a_visitor_of_another_small_app_learns_nothing(
    site: Web, browse: Browse, ids: dict[str, str]
) -> None:
    """By the least role that may ask."""
    browsers = {role: browse(site, role, "default") for role in VISITORS}
    told: list[tuple[str, int, int]] = []
    for route in walk():
        (access,) = set(accesses(route))
        if access.is_of_installation:
            continue
        browser = browsers[next(one for one in VISITORS if access.permission in PERMITS[one])]
        theirs = ask(browser, route, ids, app=APP)[0]
        none = ask(browser, route, {**ids, "app": "nowhere"}, app="nowhere")[0]
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
        path = re.sub(r"{(\w+)[^}]*}", lambda found: ids.get(found[1], "x"), route.path)
        client = api if route in API else browser
        for asked in ({}, query):
            assert client.get(path, params=asked).status_code != 500, path

    assert dict(browser.cookies) == cookies
    assert stored(site) == before
