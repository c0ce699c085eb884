"""`/api/pauses`: what each token may pause, and what it sees of it."""

from typing import Any

import pytest

from models.roles import Role
from tests.integration.web.conftest import APP, Web

EVERYTHING = {"everything": True, "until": "PT1H", "reason": "a migration"}


@pytest.mark.parametrize(
    ("app", "asked", "words"),
    [
        pytest.param(None, EVERYTHING, "everything", id="everything"),
        pytest.param(None, {"queue": "quick"}, "queue minutebook.quick", id="queue"),
        pytest.param(APP, {}, f"small app {APP}", id="app"),
    ],
)
def test_a_pause_begins_and_ends(
    web_on_sqlite: Web, app: str | None, asked: dict[str, Any], words: str
) -> None:
    client = web_on_sqlite.client(Role.OPERATOR, app)

    paused = client.post("/api/pauses", json=asked).json()
    (row,) = client.get("/api/pauses").json()
    target = {key: asked[key] for key in asked.keys() & {"queue", "everything"}}
    resumed = client.post("/api/pauses:resume", json=target).json()

    assert (paused["words"], paused["is_paused"], paused["was_paused"]) == (words, True, False)
    assert (row["words"], row["reason"]) == (words, asked.get("reason"))
    assert (resumed["is_paused"], resumed["was_paused"]) == (False, True)
    assert client.get("/api/pauses").json() == []


@pytest.mark.parametrize(
    ("address", "asked", "status"),
    [
        pytest.param("/api/pauses", EVERYTHING, 409, id="everything"),
        pytest.param("/api/pauses", {"queue": "quick"}, 409, id="queue"),
        pytest.param(f"/api/pauses?app={APP}", EVERYTHING, 409, id="everything_as_the_app"),
        pytest.param("/api/pauses?app=default", {}, 404, id="another_app"),
        pytest.param("/api/pauses?app=", EVERYTHING, 404, id="no_app"),
    ],
)
def test_a_token_of_a_small_app_pauses_that_app_alone(
    web_on_sqlite: Web, address: str, asked: dict[str, Any], status: int
) -> None:
    own, all_ = (web_on_sqlite.client(Role.OPERATOR, app) for app in (APP, None))

    assert own.post(address, json=asked).status_code == status

    assert all_.get("/api/pauses").json() == []


def test_a_wrong_body_is_refused(web_on_sqlite: Web) -> None:
    answer = web_on_sqlite.client().post("/api/pauses", json={"queue": 7, "reson": "x"})

    assert answer.status_code == 422
    assert {one["path"] for one in answer.json()["problems"]} == {"queue", "reson"}
