"""`minutebook.Client` against a real server."""

from datetime import UTC, datetime

import pytest

import minutebook
from minutebook.client import ENDED, Run
from models.operation import ENDED as ALL_ENDED
from models.roles import Role
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
