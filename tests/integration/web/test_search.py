"""The search everywhere, on each store: what a text finds, in which small apps, at what cost."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from models.roles import Role
from models.store.actions import lookup
from models.store.operations.pages import errors
from models.store.people import lookup as people
from tests.celery_messages import TASK, celery_action
from tests.factories import make_operation, update_operation
from tests.integration.web.conftest import APP, NIGHTLY, Web
from tests.integration.web.test_overview import ended, now_of
from views import search

KINDS = ("runs", "actions", "tasks", "owners", "users", "errors")


@pytest.fixture
def client(web: Web) -> httpx.Client:
    return web.client(Role.VIEWER)


def found(client: httpx.Client, text: str, **query: str) -> dict[str, Any]:
    """Return the kinds of which something was found."""
    params = {"text": text, **query}
    answer = client.get("/api/search", params=params).raise_for_status().json()
    return {kind: answer[kind] for kind in KINDS if answer[kind]}


def test_a_text_is_searched_in_names_owners_tasks_users_and_errors(
    web: Web, client: httpx.Client
) -> None:
    celery_action(web.engine, step={"kwargs": {"city": "Paris"}}, owner="Sales 100%")
    failed = ended(web, "nightly", "failed", error="no such host: Database")

    (action,) = found(client, "CLOSE day")["actions"]
    assert (action["name"], action["app"]) == ("close the day", "default")
    (task,) = found(client, TASK[2:].upper())["tasks"]
    assert (task["task"], task["name"]) == (TASK, "close the day")
    assert found(client, "100%") == {"owners": [{"name": "Sales 100%", "actions": 1}]}
    (user,) = found(client, "ANN@ex")["users"]
    assert (user["id"], user["app"], user["name"]) == ("ann@example.com", APP, "Ann")
    (error,) = found(client, " host: data ")["errors"]
    assert (error["id"], error["app"]) == (str(failed), APP)
    # An argument is no name of a task.
    assert found(client, "Paris") == {}


@pytest.mark.parametrize("length", [4, 8, 9, 32, 36])
def test_a_run_is_found_by_the_first_digits_of_its_id(
    web: Web, client: httpx.Client, length: int
) -> None:
    id = str(ended(web, "nightly", "success"))
    text = id.replace("-", "") if length == 32 else id[:length]

    assert id in [one["id"] for one in found(client, text.upper())["runs"]]


@pytest.mark.parametrize("text", ["abc", "-" * 36, "0" * 33, "ffff-zz", "é" * 8])
def test_what_begins_no_id_finds_no_run(web_on_sqlite: Web, text: str) -> None:
    assert found(web_on_sqlite.client(Role.VIEWER), text) == {}


def test_only_the_small_app_of_the_request_is_searched(web: Web) -> None:
    celery_action(web.engine, name="nightly too", owner="Sales")
    failed = ended(web, "nightly", "failed", error="no such host")
    whole, shop = web.client(Role.VIEWER), web.client(Role.VIEWER, APP)

    assert len(found(whole, "nightly")["actions"]) == 2
    assert len(found(shop, "nightly")["actions"]) == 1
    assert len(found(whole, "nightly", app="default")["actions"]) == 1
    assert found(shop, "sales") == found(shop, TASK) == {}
    assert found(whole, "such host", app="default") == {}
    assert found(whole, str(failed), app="default") == {}
    assert found(whole, "ann@", app="default") == {}


def test_ten_of_each_kind_are_shown_and_that_there_are_more(web: Web, client: httpx.Client) -> None:
    documents = [{**NIGHTLY, "name": f"a-{number:02}", "owner": "a-b"} for number in range(11)]
    admin = web.client(Role.ADMIN, APP)
    admin.post("/api/actions:apply", json=documents).raise_for_status()

    answer = client.get("/api/search", params={"text": "a-"}).json()

    assert [one["name"] for one in answer["actions"]] == [one["name"] for one in documents[:10]]
    assert answer["owners"] == [{"name": "a-b", "actions": 11}]
    assert answer["more"] == ["actions"]


def test_a_search_of_tasks_says_that_it_read_only_so_many(
    web: Web, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        celery_action(web.engine, name=f"a{number}", step={"kwargs": {"city": "Lutetia"}})
    answers = []
    for most in (3, 2):
        monkeypatch.setattr(lookup, "MOST_PLANS", most)
        answers.append(client.get("/api/search", params={"text": "Lutetia"}).json())

    assert [(one["tasks"], one["more"]) for one in answers] == [([], []), ([], ["tasks"])]


def test_errors_are_those_of_the_last_days_the_newest_first(
    web: Web, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    action, now = celery_action(web.engine), now_of(web)

    def failed(days: float, **known: str) -> str:
        id: UUID = make_operation(web.engine, action, now - timedelta(days=days))
        update_operation(web.engine, id, state="running", worker="w", heartbeat_at=now)
        ended_at = now - timedelta(days=days)
        update_operation(web.engine, id, finished_at=ended_at, **{"state": "failed", **known})
        return str(id)

    ids = [failed(3, error="disk full"), failed(1, state="partial", reason="Disk is full")]
    failed(8, error="disk full")
    failed(2, state="success", reason="disk full")

    assert [one["id"] for one in found(client, "disk")["errors"]] == ids[::-1]
    monkeypatch.setattr(errors, "MOST_READ", 1)
    assert [one["id"] for one in found(client, "disk")["errors"]] == ids[1:]


def test_no_more_users_are_read_than_the_answer_says(
    web_on_sqlite: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "MOST_READ", 0)

    assert found(web_on_sqlite.client(Role.VIEWER), "ann@") == {}


@pytest.mark.parametrize("text", ["", "  ", "x" * 201])
def test_a_text_of_no_use_is_refused(web_on_sqlite: Web, text: str) -> None:
    client = web_on_sqlite.client(Role.VIEWER)

    refused = client.get("/api/search", params={"text": text})

    assert refused.status_code == 409
    assert f"write 1 to {search.LONGEST_TEXT}" in refused.json()["detail"]
