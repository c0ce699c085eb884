"""Who may do what: every endpoint and role, the own small app and another; tokens are rotated.

The page of roles has a table of what they answer.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from fastapi.routing import APIRoute

from models.roles import PERMITS, Permission, Role
from models.tables import tokens
from services.runs import run
from services.tokens import create
from tests.integration.web.conftest import APP, Web
from tests.transactions import fetched
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


Row = tuple[str, str, str, str]


def table_on(page: Path) -> list[Row]:
    """Return the rows of a page: what is asked, the permission, what it concerns, the roles."""
    roles = dict(re.findall(r"^\| (\w+) \| (\w+(?:, \w+)*) \|$", PAGE.read_text(), re.M))
    rows = re.findall(r"^\| `(\w+ /\S*)` \| (\w+) \| (\w+) \|$", page.read_text(), re.M)
    return sorted((what, permission, on, roles[permission]) for what, permission, on in rows)


def row_of(route: APIRoute, whole: Sequence[Role], own: Sequence[Role]) -> Row:
    """Return the row of an endpoint that did not refuse these roles: for everything, for an app."""
    (access,) = set(accesses(route))
    concerns = "app" if own else "installation"
    assert list(own) in ([], list(whole))
    return name_of(route), str(access.permission), concerns, ", ".join(whole)


@pytest.fixture
def ids(site: Web) -> dict[str, str]:
    """The ids that paths ask for: those of the small app `shop`."""
    return {
        "app": APP, "action": "nightly", "id": str(run(site.shop, "nightly").id), "name": "ops",
        "template": "hello", "domain": "sales", "user": "ann@example.com",
    }  # fmt: skip


class Bearers:
    """Clients of a role: a worker has a token for jobs, and one for tasks."""

    def __init__(self, web: Web, role: Role, app: str | None = None) -> None:
        self._work = web.client(role, app)
        its = {"tasks": ["*"]} if role is Role.WORKER else {}
        self._follow = web.client(role, app, **its)

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


def test_without_a_token_nothing_is_told(site: Web, ids: dict[str, str]) -> None:
    client = site.client(role=None)

    assert {ask(client, one, ids) for one in GUARDED} == {401}


def test_each_role_may_do_what_the_table_says(site: Web, ids: dict[str, str]) -> None:
    whole, own = ({role: Bearers(site, role, app) for role in Role} for app in (None, APP))
    found: list[Row] = []
    # What deletes comes last.
    for route in sorted(GUARDED, key=lambda one: "DELETE" in name_of(one)):
        by_whole = {role: one.ask(route, ids, app=APP) for role, one in whole.items()}
        by_own = {role: one.ask(route, ids) for role, one in own.items()}
        assert 401 not in {*by_whole.values(), *by_own.values()}, name_of(route)
        found.append(row_of(route, *(permitted(one) for one in (by_whole, by_own))))

    assert sorted(found) == table_on(PAGE)


def permitted(statuses: Mapping[Role, int]) -> list[Role]:
    return [role for role, status in statuses.items() if status != 403]


def test_a_token_of_another_small_app_learns_nothing(site: Web, ids: dict[str, str]) -> None:
    """By the least role that may ask."""
    clients = {role: Bearers(site, role, "default") for role in Role}
    none = {**ids, "app": "nowhere", "id": "00000000-0000-0000-0000-000000000000"}
    told: list[tuple[str, int, int]] = []
    for route in GUARDED:
        (access,) = accesses(route)
        # The state of an operation that does not exist is `unknown`.
        if access.is_of_installation or route.path in NAMELESS or route.path.endswith("/state"):
            continue
        client = clients[next(one for one in Role if access.permission in PERMITS[one])]
        answers = client.ask(route, ids, app=APP), client.ask(route, none, app="nowhere")
        if answers != (404, 404):
            told.append((name_of(route), *answers))
    state = f"/api/operations/{ids['id']}/state"
    states = [site.client(Role.VIEWER, app).get(state).json() for app in ("default", APP)]

    assert told == []
    assert site.client(Role.VIEWER, APP).get("/api/actions?app=").status_code == 404
    assert [one["state"] for one in states] == ["unknown", "queued"]


def test_an_editor_cannot_trust_or_make_small_apps(site: Web) -> None:
    editor, new = site.client(Role.EDITOR, APP), {"If-None-Match": "*"}

    refused = editor.patch(f"/api/apps/{APP}/trust", json={"trusted": True})
    created = editor.put("/api/apps/other", json={"name": "other"}, headers=new)

    assert (refused.status_code, created.status_code) == (403, 404)


def status(web: Web, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.get(f"{web.url}/api/actions", headers=headers).status_code


def rows(web: Web) -> dict[str, sa.RowMapping]:
    return {row["id"]: row for row in fetched(web.engine, sa.select(tokens)).mappings()}


def test_a_rotated_token_has_all_but_the_secret(web: Web) -> None:
    old = create(web.shop, Role.WORKER, "P90D", "CI", tasks=["shop.*"])

    answer = web.client().post(f"/api/tokens/{old.id}:rotate")

    new = answer.json()
    assert answer.status_code == 200
    assert (new["role"], new["app"]) == ("worker", APP)
    its, was = rows(web)[new["id"]], rows(web)[old.id]
    for key in ("small_app_id", "role", "name", "expires_at", "tasks", "kind"):
        assert its[key] == was[key]
    assert [status(web, one) for one in (old.token, new["token"])] == [401, 403]


def test_with_a_grace_the_old_token_goes_on_for_that_long(web: Web) -> None:
    lasts, ends = (create(web.opened, Role.VIEWER, one) for one in (None, "PT30M"))
    before = rows(web)[ends.id]["expires_at"]

    for one in (lasts, ends):
        web.client().post(f"/api/tokens/{one.id}:rotate", params={"grace": "PT1H"})

    assert [status(web, one.token) for one in (lasts, ends)] == [200, 200]
    made = max(row["created_at"] for row in rows(web).values())
    left: timedelta = rows(web)[lasts.id]["expires_at"] - made
    assert abs(left - timedelta(hours=1)) < timedelta(minutes=1)
    assert rows(web)[ends.id]["expires_at"] == before


@pytest.mark.parametrize(("asked", "expected"), [({}, 404), ({"grace": "soon"}, 409)])
def test_what_cannot_be_rotated_is_refused(web: Web, asked: dict[str, str], expected: int) -> None:
    id = create(web.opened, Role.VIEWER).id
    web.client().delete(f"/api/tokens/{id}")

    assert web.client().post(f"/api/tokens/{id}:rotate", params=asked).status_code == expected


def test_an_admin_of_a_small_app_rotates_its_tokens_alone(web: Web) -> None:
    own, other = create(web.shop, Role.VIEWER).id, create(web.opened, Role.VIEWER).id
    admin = web.client(Role.ADMIN, APP)

    answers = [admin.post(f"/api/tokens/{id}:rotate") for id in (own, other)]

    assert [one.status_code for one in answers] == [200, 404]
    entry = admin.get("/api/audit", params={"limit": 1}).json()["items"][0]
    assert (entry["verb"], entry["object"], entry["app"]) == ("token.rotate", own, APP)
