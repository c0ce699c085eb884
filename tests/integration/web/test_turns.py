"""Heavy requests of one small app, and the pages of all others meanwhile."""

import threading
from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from models.roles import Permission, Role
from runtime.clock import wait_for
from tests.integration.web.conftest import APP, Web
from tests.integration.web.test_roles import accesses
from views.apps import changes
from web.app import api_routers
from web.dashboard.mounting import pages
from web.routing import HEAVY, ByTurns

ROUTES = [
    route
    for router in (*api_routers(), *pages())
    for route in router.routes
    if isinstance(route, APIRoute)
]
# More than the server has threads.
MANY = 24
# Far less than an import waits for the lock of another.
AT_ONCE_S = 5
PAGE = "/api/actions?app=bakery"


def test_whatever_an_editor_changes_takes_turns() -> None:
    changing = [
        route
        for route in ROUTES
        if {"GET", "HEAD"}.isdisjoint(route.methods or ())
        and any(one.permission is Permission.EDIT for one in accesses(route))
    ]

    assert changing
    assert [route.path for route in changing if route.endpoint not in HEAVY] == []


def test_whatever_is_heavy_has_a_route_that_gives_turns() -> None:
    known = {route.endpoint for route in ROUTES if isinstance(route, ByTurns)}

    assert known >= HEAVY
    assert {"preview_template", "import_users"} <= {one.__name__ for one in HEAVY}


def waiting(app: FastAPI) -> int:
    """Return how many heavy requests of the shop wait for their turn."""
    return len(app.state.turns._waiting.get(APP, ()))


@pytest.fixture
def bakery(web_on_sqlite: Web) -> httpx.Client:
    """A viewer of another app, whose token was used: its next use writes nothing."""
    changes.create(web_on_sqlite.opened, ("", {"name": "bakery"}))
    viewer = web_on_sqlite.client(Role.VIEWER, "bakery")
    assert viewer.get(PAGE).status_code == 200
    viewer.timeout = httpx.Timeout(AT_ONCE_S)
    return viewer


@pytest.fixture
def answers(web_on_sqlite: Web, bakery: httpx.Client) -> Iterator[list[int]]:
    """The answers to many imports of the shop, the first of which waits for the database."""
    del bakery
    editor = web_on_sqlite.client(Role.EDITOR, APP)
    editor.get(f"/api/apps/{APP}/users")
    found: list[int] = []

    def send() -> None:
        answer = editor.post(f"/api/apps/{APP}/users:import", json=[{"id": "ben@x.org"}])
        found.append(answer.status_code)

    senders = [threading.Thread(target=send) for _ in range(MANY)]
    # The lock of SQLite for writes.
    with web_on_sqlite.engine.begin():
        for one in senders:
            one.start()
        assert wait_for(lambda: waiting(web_on_sqlite.app) == MANY - 1, AT_ONCE_S)
        yield found
    for one in senders:
        one.join()
    assert set(found) == {200}


def test_imports_of_one_app_leave_the_pages_of_others_alone(
    answers: list[int], bakery: httpx.Client
) -> None:
    for _ in range(3):
        assert bakery.get(PAGE).status_code == 200

    assert answers == []
