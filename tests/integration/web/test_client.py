"""Clients: minutebook.Client against a real server, and what errors say to each of them."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

import minutebook
from cli.remote.server import Remote
from minutebook.client import ENDED, Run
from models.errors import NotFound, Refused
from models.operation import ENDED as ALL_ENDED
from models.roles import Role
from services import runs, upcoming
from services.apps import changes as app_changes
from tests.integration.web.conftest import APP, NIGHTLY, Web

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def test_an_action_is_applied_run_and_explained(site: Web) -> None:
    token = site.token(Role.EDITOR, APP)
    with minutebook.Client(site.url, token) as client:
        (applied,) = client.apply([{**NIGHTLY, "name": "a/b c"}])
        ran = client.run(applied.uid, key="once")
        again = client.run(applied.uid, key="once", wait_s=0.1)
        explained = client.explain(applied.uid, NOON)

        assert (applied.name, applied.change, applied.revision) == ("a/b c", "created", 1)
        assert ran.id == again.id
        assert not again.has_ended
        assert client.get_operation_state(ran.id) == "queued"
        assert client.get_operation_state("nothing") == "unknown"
        assert explained.verdict == "not_an_occurrence"


def test_an_ended_operation_is_awaited(site: Web) -> None:
    token = site.token(Role.OPERATOR, APP)
    with minutebook.Client(site.url, token) as client:
        ran = client.run("nightly", key="x")
        site.client(Role.OPERATOR, APP).post(f"/api/operations/{ran.id}:cancel")

        assert client.run("nightly", key="x", wait_s=30) == Run(ran.id, "cancelled")


def test_a_refusal_has_all_faults(site: Web) -> None:
    with minutebook.Client(site.url, site.token(Role.EDITOR, APP)) as client:
        with pytest.raises(minutebook.ApiError, match="when") as wrong:
            client.apply([{**NIGHTLY, "when": {}}])
        with pytest.raises(ValueError, match="time zone"):
            client.explain("nightly", NOON.replace(tzinfo=None))
    stranger = minutebook.Client(site.url, "mbt_x")
    with stranger, pytest.raises(minutebook.ApiError, match="token") as unknown:
        stranger.run("nightly")

    assert (wrong.value.status, wrong.value.kind) == (422, "invalid-document")
    assert wrong.value.problems[0]["path"]
    assert unknown.value.status == 401


def test_an_answer_that_is_no_json_is_told(site: Web) -> None:
    with (
        minutebook.Client(site.url, site.token(Role.VIEWER, APP)) as client,
        pytest.raises(minutebook.ApiError, match="answered without JSON"),
    ):
        client.call("GET", "/sign-in")


def test_an_answer_without_content_is_none(site: Web) -> None:
    with minutebook.Client(site.url, site.token(Role.WORKER, APP)) as client:
        assert client.call("GET", "/healthz") is None
        assert client.call("GET", "/jobs/next") is None


def test_the_client_knows_every_state_that_ends() -> None:
    assert set(ALL_ENDED) == ENDED


FUTURE = "2199-01-01T00:00:00Z"
SEEN = {"event": "instance.user.last_seen", "user": "ann@example.com"}


def test_an_error_names_fields_and_parameters(site: Web) -> None:
    client = site.client()
    of_app = f"/api/apps/{APP}"
    on_event = {**NIGHTLY, "name": "seen", "when": {"on": "instance.user.last_seen"}}
    client.post("/api/actions", params={"app": APP}, json=on_event).raise_for_status()

    found = [
        client.patch(f"{of_app}/users/ann@example.com", json={"activated_at": FUTURE}),
        client.patch(f"{of_app}/users/ann@example.com", json={}),
        client.post(f"{of_app}/events", json={**SEEN, "at": FUTURE}),
        client.post(f"{of_app}/events", json={**SEEN, "id": "7"}),
        client.get("/api/actions", params={"app": APP, "all_apps": True}),
        client.get("/api/actions/nightly"),
        client.post("/api/actions/seen:run", params={"app": APP}),
        client.post("/api/actions/nightly:run", params={"app": APP, "user": "ann@example.com"}),
        client.delete(of_app),
        client.post(
            "/api/actions/nightly:plan-backfill",
            params={"app": APP, "from": FUTURE, "to": FUTURE},
        ),
    ]

    details = [one.json()["detail"] for one in found]
    assert [one for one in details if "--" in one] == []
    assert {one.status_code for one in found} <= {404, 409, 422}
    assert details[5].endswith(f"send app={APP}")
    assert details[8].endswith("send force=true")


def test_a_command_line_elsewhere_says_what_it_would_say_here(site: Web) -> None:
    server = Remote(site.url, site.token())
    of_shop = replace(server, app=APP)

    with pytest.raises(NotFound, match=f"add --app {APP}"):
        server.call(upcoming.show, "nightly")
    with pytest.raises(Refused, match="run it without --user"):
        of_shop.call(runs.run, "nightly", "ann@example.com")
    with pytest.raises(Refused, match="add --force"):
        server.call(app_changes.delete, APP, is_sure=False)
    of_shop.close()
    server.close()
