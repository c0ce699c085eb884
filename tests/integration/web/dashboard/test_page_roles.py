"""Who may open which page and change what: every page and role, both kinds of small app.

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
from services.apps.trust import TrustChange, trust_app
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


@pytest.fixture(params=[False, True], ids=["restricted", "trusted"])
def ids(web_on_sqlite: Web, request: pytest.FixtureRequest) -> dict[str, str]:
    """The ids that paths ask for: those of the small app `shop`, of each kind."""
    trust_app(web_on_sqlite.opened, APP, TrustChange(trusted=request.param))
    shop = web_on_sqlite.opened.for_request(APP, is_bound=True, bearer="tests")
    operation = run(shop, "nightly", None, None)
    named = {"app": APP, "action": "nightly", "template": "hello", "verb": "run"}
    return {**named, "id": str(operation.id)}


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


def test_without_signing_in_no_page_opens(
    web_on_sqlite: Web, browse: Browse, ids: dict[str, str]
) -> None:
    browser = browse(web_on_sqlite, role=None)

    assert {name_of(one): ask(browser, one, ids)[0] for one in walk()} == {
        name_of(one): 303 for one in walk()
    }


def test_each_role_may_do_what_the_table_says(
    web_on_sqlite: Web, browse: Browse, ids: dict[str, str]
) -> None:
    whole, own = (
        {role: browse(web_on_sqlite, role, app) for role in VISITORS} for app in (None, APP)
    )
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


@pytest.mark.parametrize("role", VISITORS)
def test_a_visitor_of_another_small_app_learns_nothing(
    web_on_sqlite: Web, browse: Browse, ids: dict[str, str], role: Role
) -> None:
    browser = browse(web_on_sqlite, role, "default")
    told: list[tuple[str, int, int]] = []
    for route in walk():
        (access,) = set(accesses(route))
        if access.is_of_installation:
            continue
        theirs = ask(browser, route, ids, app=APP)[0]
        none = ask(browser, route, {**ids, "app": "nowhere"}, app="nowhere")[0]
        expected = 404 if access.permission in PERMITS[role] else 403
        if not (theirs == none == expected):
            told.append((name_of(route), theirs, none))

    assert told == []


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


@pytest.mark.parametrize("ids", [False], indirect=True, ids=["restricted"])
def test_no_get_changes_anything(web_on_sqlite: Web, browse: Browse, ids: dict[str, str]) -> None:
    browser, api = browse(web_on_sqlite), web_on_sqlite.client()
    before, cookies = stored(web_on_sqlite), dict(browser.cookies)
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
    assert stored(web_on_sqlite) == before


def test_an_operation_of_another_small_app_is_unknown(
    web_on_sqlite: Web, browse: Browse, ids: dict[str, str]
) -> None:
    browser, own = browse(web_on_sqlite, app="default"), browse(web_on_sqlite, app=APP)

    statuses = [one.get(f"/operations/{ids['id']}").status_code for one in (browser, own)]

    assert statuses == [404, 200]
