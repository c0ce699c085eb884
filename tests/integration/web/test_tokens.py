"""Tokens over HTTP: rotated, at once or with a grace."""

from datetime import timedelta

import httpx
import pytest
import sqlalchemy as sa

from models.roles import Role
from models.tables import tokens
from services.tokens import create
from tests.integration.web.conftest import APP, Web


def status(web: Web, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.get(f"{web.url}/api/actions", headers=headers).status_code


def rows(web: Web) -> dict[str, sa.RowMapping]:
    with web.engine.connect() as connection:
        return {row["id"]: row for row in connection.execute(sa.select(tokens)).mappings()}


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
