"""Server-sent events: what changes is sent, once, and again only to whoever missed it."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import httpx
import pytest
import sqlalchemy as sa

from models.roles import Role
from models.sql import database_now
from models.store.notices.alerting import NO_ALERTS
from models.store.operations.claims import claim
from models.tables import tokens
from tests.integration.web.conftest import APP, Web


def events(response: httpx.Response) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Yield each event's name, id and data."""
    event: dict[str, str] = {}
    for line in response.iter_lines():
        if line and not line.startswith(":"):
            name, _, value = line.partition(":")
            event[name] = value.strip()
        elif not line and "data" in event:
            yield event["event"], event.get("id", ""), json.loads(event["data"])
            event = {}


def test_an_operation_is_followed_to_its_end(web: Web) -> None:
    client, watcher = web.client(Role.OPERATOR, APP), web.client(Role.VIEWER, APP)
    id = client.post("/api/actions/nightly:run").json()["id"]
    with watcher.stream("GET", f"/api/operations/{id}/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        came = events(response)
        first = next(came)
        with web.opened.engine.begin() as connection:
            claim(connection, UUID(id), 1, "worker@tests", alerts=NO_ALERTS)
        second = next(came)
        client.post(f"/api/operations/{id}:cancel")
        third = next(came)

    assert [one[0] for one in (first, second, third)] == ["operation"] * 3
    assert [one[2]["state"] for one in (first, second, third)] == ["queued", "running", "running"]
    assert third[2]["cancel_requested_at"] is not None
    assert len({first[1], second[1], third[1]}) == 3


def test_who_comes_back_gets_only_what_is_new(web_on_sqlite: Web) -> None:
    client = web_on_sqlite.client(Role.OPERATOR, APP)
    id = client.post("/api/actions/nightly:run").json()["id"]
    path = f"/api/operations/{id}/events"
    with client.stream("GET", path) as response:
        _, last, _ = next(events(response))

    with client.stream("GET", path, headers={"Last-Event-ID": last}) as response:
        client.post(f"/api/operations/{id}:cancel")
        _, newest, data = next(events(response))

    assert data["state"] == "cancelled"
    assert newest != last


def test_the_status_of_a_small_app_is_sent_too(web_on_sqlite: Web) -> None:
    client = web_on_sqlite.client(Role.VIEWER, APP)
    polled = client.get(f"/api/apps/{APP}/status").json()
    with client.stream("GET", f"/api/apps/{APP}/status/events") as response:
        name, _, data = next(events(response))

    assert name == "status"
    assert data == polled
    assert polled["status"] == "empty"


def test_what_does_not_exist_has_no_events(web_on_sqlite: Web) -> None:
    client = web_on_sqlite.client(Role.VIEWER, APP)

    assert client.get(f"/api/operations/{UUID(int=1)}/events").status_code == 404
    assert client.get("/api/apps/default/status/events").status_code == 404


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param({"revoked_at": database_now()}, id="revoked"),
        pytest.param({"expires_at": database_now()}, id="expired"),
    ],
)
def test_a_stream_ends_with_its_token(web: Web, ending: dict[str, Any]) -> None:
    kept, lost = web.client(Role.VIEWER, APP), web.client(Role.VIEWER, APP)
    id = web.client(Role.OPERATOR, APP).post("/api/actions/nightly:run").json()["id"]
    path = f"/api/operations/{id}/events"
    with kept.stream("GET", path) as stays, lost.stream("GET", path) as ends:
        still, came = events(stays), events(ends)
        next(still), next(came)
        token = lost.headers["Authorization"].split("_")[1]
        with web.opened.engine.begin() as connection:
            connection.execute(sa.update(tokens).where(tokens.c.id == token).values(ending))

        assert [name for name, _, _ in came] == ["unauthorized"]
        assert lost.get(path).status_code == 401
        web.client(Role.OPERATOR, APP).post(f"/api/operations/{id}:cancel")
        assert next(still)[2]["state"] == "cancelled"
