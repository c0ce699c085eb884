"""Who may do what: every endpoint, every role, one's own small app and another's."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from models.roles import PERMITS, Permission, Role
from services.runs import run
from tests.integration.web.conftest import APP, Web
from web.access import ACCESS, Access
from web.app import api_routers

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "roles.md"
# Probes say nothing but whether all is well; the last is off until a document allows it.
PUBLIC = {"/healthz", "/readyz", "/healthz/ticks", "/status/{app}.json"}
ROUTES = [
    route for router in api_routers() for route in router.routes if isinstance(route, APIRoute)
]


# A job is found by the lease in the report of its worker.
LEASE = b'{"lease": "0-1"}'
REPORTS = {f"/jobs/{{id}}/{verb}": LEASE for verb in ("complete", "beat", "progress")} | {
    "/jobs/{id}/error": b'{"lease": "0-1", "error": "none"}',
    "/api/operations/{id}:take": b'{"attempt": 1, "delivery": "12345678", "worker": "w"}',
    "/api/operations/{id}:beat": LEASE,
    "/api/operations/{id}:end": b'{"lease": "0-1", "outcome": "success"}',
    "/api/operations/{id}:discard": b"""
        {"attempt": 1, "worker": "w", "what": "revoked", "reason": "none"}""",
}
# They name nothing of a small app.
NAMELESS = {"/api/operations:beat", "/api/followers"}


def name_of(route: APIRoute) -> str:
    (method,) = route.methods or {"?"}
    return f"{method} {route.path}"


def accesses(route: APIRoute) -> list[Access]:
    found: list[Access] = []
    left = list(route.dependant.dependencies)
    while left:
        one = left.pop()
        left += one.dependencies
        found += [ACCESS[one.call]] if one.call in ACCESS else []
    return found


ROLES_OF = {name_of(route): accesses(route) for route in ROUTES}
GUARDED = [route for route in ROUTES if route.path not in PUBLIC]


def test_every_endpoint_but_the_public_ones_names_one_permission() -> None:
    assert {path for path, found in ROLES_OF.items() if len(found) != 1} == {
        f"{method} {path}" for method in ("GET", "HEAD") for path in PUBLIC
    }


def test_the_page_of_roles_is_what_the_code_runs_by() -> None:
    rows = re.findall(r"^\| `(\w+ /\S+)` \| (\w+) \| (.+?) \| (.+?) \|$", PAGE.read_text(), re.M)
    expected = [
        (
            name,
            str(one.permission),
            "the installation" if one.is_of_installation else "the small app",
            ", ".join(role for role in Role if one.permission in PERMITS[role]),
        )
        for name, (one,) in ((name, found) for name, found in ROLES_OF.items() if found)
    ]

    assert sorted(rows) == sorted(expected)


@pytest.fixture
def walked(web_on_sqlite: Web) -> tuple[Web, dict[str, str]]:
    """The server, and the ids that paths ask for: those of the small app `shop`."""
    shop = web_on_sqlite.opened.for_request(APP, is_bound=True, bearer="tests")
    operation = run(shop, "nightly")
    ids = {
        "app": APP, "action": "nightly", "id": str(operation.id), "template": "hello",
        "domain": "sales", "user": "ann@example.com",
        "name": "ops",
    }  # fmt: skip
    return web_on_sqlite, ids


class Bearers:
    """Clients of a role: a worker has a token for jobs, and one for tasks."""

    def __init__(self, web: Web, role: Role, app: str | None = None) -> None:
        self._work = web.client(role, app)
        its = {"tasks": ["*"]} if role is Role.WORKER else {}
        self._follow = web.client(role, app, token=its)

    def ask(self, route: APIRoute, ids: dict[str, str], **query: Any) -> int:
        """Send a request by the token that may, if one of the role may."""
        (access,) = accesses(route)
        client = self._follow if access.permission is Permission.FOLLOW else self._work
        return ask(client, route, ids, **query)


def ask(client: httpx.Client, route: APIRoute, ids: dict[str, str], **query: Any) -> int:
    """Send a request whose effect, if it has one, is refused: it changes nothing."""
    (method,) = route.methods or {"?"}
    path = route.path.format(**ids)
    body = REPORTS.get(route.path, b"no JSON")
    return client.request(method, path, params=query, content=body).status_code


def test_without_a_token_nothing_is_told(walked: tuple[Web, dict[str, str]]) -> None:
    web, ids = walked
    client = web.client(role=None)

    assert {name_of(one): ask(client, one, ids) for one in GUARDED} == {
        name_of(one): 401 for one in GUARDED
    }


@pytest.mark.parametrize("role", Role)
def test_each_role_may_do_what_the_table_says(
    walked: tuple[Web, dict[str, str]], role: Role
) -> None:
    web, ids = walked
    whole, own = Bearers(web, role), Bearers(web, role, APP)
    wrong: list[tuple[str, int, int]] = []
    # What deletes comes last.
    for route in sorted(GUARDED, key=lambda one: "DELETE" in name_of(one)):
        (access,) = accesses(route)
        may = access.permission in PERMITS[role]
        by_whole, by_own = whole.ask(route, ids, app=APP), own.ask(route, ids)
        is_right = (by_whole != 403) is may and (by_own != 403) is (
            may and not access.is_of_installation
        )
        if not is_right or 401 in {by_whole, by_own}:
            wrong.append((name_of(route), by_whole, by_own))

    assert wrong == []


@pytest.mark.parametrize("role", Role)
def test_a_token_of_another_small_app_learns_nothing(
    walked: tuple[Web, dict[str, str]], role: Role
) -> None:
    web, ids = walked
    client = Bearers(web, role, "default")
    told: list[tuple[str, int, int]] = []
    for route in GUARDED:
        (access,) = accesses(route)
        if access.is_of_installation:
            continue
        theirs = client.ask(route, ids, app=APP)
        nobody = {**ids, "app": "nowhere", "id": "00000000-0000-0000-0000-000000000000"}
        none = client.ask(route, nobody, app="nowhere")
        expected = 404 if access.permission in PERMITS[role] else 403
        # The state of an operation that does not exist is `unknown`.
        if route.path.endswith("/state") or route.path in NAMELESS:
            continue
        if not (theirs == none == expected):
            told.append((name_of(route), theirs, none))

    assert told == []


def test_the_state_of_another_apps_operation_is_unknown(
    walked: tuple[Web, dict[str, str]],
) -> None:
    web, ids = walked
    path = f"/api/operations/{ids['id']}/state"

    assert web.client(Role.VIEWER, "default").get(path).json()["state"] == "unknown"
    assert web.client(Role.VIEWER, APP).get(path).json()["state"] == "queued"


def test_an_editor_cannot_trust_or_make_small_apps(web_on_sqlite: Web) -> None:
    editor = web_on_sqlite.client(Role.EDITOR, APP)
    new = {"If-None-Match": "*"}

    refused = editor.patch(f"/api/apps/{APP}/trust", json={"trusted": True})
    created = editor.put("/api/apps/other", json={"name": "other"}, headers=new)

    assert (refused.status_code, created.status_code) == (403, 404)
    assert Permission.ADMINISTER not in PERMITS[Role.EDITOR]
