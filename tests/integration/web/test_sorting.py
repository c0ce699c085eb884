"""Sorted lists of actions and of runs, on each store: each page follows the one before."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
import sqlalchemy as sa

from models.roles import Role
from models.sql import upsert
from models.store.actions import search
from models.store.operations.pages import ranking
from models.tables import action_cursor, action_state
from tests.factories import make_action, make_operation, update_operation
from tests.integration.web.conftest import APP, NIGHTLY, Web
from tests.integration.web.test_overview import now_of
from views.runs import run

HOUR = timedelta(hours=1)
ACTIONS, RUNS = "/api/actions:search", "/api/operations"


@pytest.fixture
def client(web: Web) -> httpx.Client:
    return web.client(Role.ADMIN, APP)


def walked(client: httpx.Client, path: str, **query: Any) -> list[list[dict[str, Any]]]:
    """Return the pages of a list, two things on each."""
    pages: list[list[dict[str, Any]]] = []
    cursor: dict[str, str] = {}
    while True:
        asked = {"limit": 2, **query, **cursor}
        page = client.get(path, params=asked).raise_for_status().json()
        pages.append(page["items"])
        if page["next"] is None:
            return pages
        cursor = {"cursor": page["next"]}


def make_actions(web: Web, client: httpx.Client) -> dict[str, UUID]:
    """Store seven actions, of which two are paused, and three ran."""
    documents = [{**NIGHTLY, "name": f"a{number}", "active": number < 5} for number in range(7)]
    made = client.post("/api/actions:apply", json=documents).raise_for_status().json()
    uids = {one["name"]: UUID(one["uid"]) for one in made}
    soon = now_of(web) + HOUR
    with web.engine.begin() as connection:
        for name, hours in {"a0": 4, "a1": 2, "a2": 2, "a3": None, "a4": 1, "a5": 0}.items():
            at = None if hours is None else soon + hours * HOUR
            its = sa.update(action_cursor).where(action_cursor.c.action_uid == uids[name])
            connection.execute(its.values(next_occurrence_at=at))
        ran = {"a1": 3, "a2": 1, "a6": 1}
        rows = [
            {"action_uid": uids[name], "subject": "", "last_state": "success", "last_run_at": at}
            for name, at in ((name, soon - hours * HOUR) for name, hours in ran.items())
        ]
        upsert(connection, action_state, rows)
    return uids


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("name", ["a0", "a1", "a2", "a3", "a4", "a5", "a6"]),
        # Those without a next run, and those that are paused, are the last.
        ("next", ["a4", "a1", "a2", "a0", "a3", "a5", "a6"]),
        ("last", ["a2", "a6", "a1", "a0", "a3", "a4", "a5"]),
    ],
)
def test_the_pages_of_sorted_actions_have_each_once(
    web: Web, client: httpx.Client, sort: str, expected: list[str]
) -> None:
    make_actions(web, client)

    pages = walked(client, ACTIONS, sort=sort, words="a")
    found = [one["name"] for page in pages for one in page if one["name"] in expected]

    assert found == expected
    assert {len(page) for page in pages[:-1]} == {2}


def test_too_many_actions_are_sorted_by_name_alone(
    web: Web, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_actions(web, client)
    monkeypatch.setattr(search, "MOST_SORTED", 6)

    refused = client.get(ACTIONS, params={"sort": "last", "words": "a"})

    assert refused.status_code == 409
    assert refused.json()["detail"] == (
        "more than 6 actions match, too many to sort by 'last'; "
        "sort by name, or name a small app or a part of the name"
    )
    assert client.get(ACTIONS, params={"sort": "last", "words": "a1"}).status_code == 200
    assert client.get(ACTIONS).status_code == 200


def make_runs(web: Web) -> list[str]:
    """Return seven runs, by their places in the order of time, with this duration and lateness."""
    app = web.opened.for_request(APP, is_bound=True, bearer="tests").small_app
    action = make_action(web.engine, app=app, name="often")
    now = now_of(web).replace(microsecond=0)
    # In minutes; None never began, and the last one runs.
    figures = [(5, 1), (9, 3), (None, None), (5, 2), (1, 0), (7, 3), (None, 9)]
    ids = []
    for number, (took, late) in enumerate(figures):
        began_at = now - HOUR
        # Each has an instant of its own: that is its identity.
        due_at = began_at - timedelta(minutes=late or 0, seconds=number)
        id = make_operation(web.engine, action, due_at, app=app)
        ids.append(str(id))
        common: dict[str, Any] = {"recorded_at": now - number * timedelta(seconds=1)}
        if late is None:
            update_operation(web.engine, id, state="skipped", **common)
            continue
        began = {"started_at": began_at, "first_started_at": began_at}
        running = {"worker": "w", "heartbeat_at": now}
        update_operation(web.engine, id, state="running", **running, **began, **common)
        if took is not None:
            until = began_at + timedelta(minutes=took)
            update_operation(web.engine, id, state="success", finished_at=until)
    return ids


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("time", [[0], [1], [2], [3], [4], [5], [6]]),
        # Which of two that are alike comes first, the id decides.
        ("duration", [[6], [1], [5], [0, 3], [0, 3], [4], [2]]),
        ("lateness", [[6], [5], [1], [3], [0], [4], [2]]),
    ],
)
def test_the_pages_of_sorted_runs_have_each_once(
    web: Web, client: httpx.Client, sort: str, expected: list[list[int]]
) -> None:
    ids = make_runs(web)

    pages = walked(client, RUNS, sort=sort)

    found = [ids.index(one["id"]) for page in pages for one in page]
    assert sorted(found) == list(range(7))
    assert all(one in places for one, places in zip(found, expected, strict=True))


def test_what_is_recorded_or_ends_meanwhile_moves_no_run_to_another_page(
    web: Web, client: httpx.Client
) -> None:
    ids = make_runs(web)
    first = client.get(RUNS, params={"sort": "duration", "limit": 2}).json()

    run(web.opened.for_request(APP, is_bound=True, bearer="tests"), "nightly")
    now: datetime = now_of(web)
    update_operation(web.engine, UUID(ids[6]), state="success", finished_at=now + HOUR)
    asked = {"sort": "duration", "limit": 9, "cursor": first["next"]}
    second = client.get(RUNS, params=asked).json()

    assert [one["id"] for one in first["items"]] == [ids[6], ids[1]]
    assert {one["id"] for one in second["items"]} == {ids[one] for one in (0, 2, 3, 4, 5)}


@pytest.mark.parametrize("sort", ["duration", "lateness"])
def test_what_begins_meanwhile_is_shown_where_it_was(
    web: Web, client: httpx.Client, sort: str
) -> None:
    app = web.opened.for_request(APP, is_bound=True, bearer="tests").small_app
    waits = make_action(web.engine, app=app, name="waits")
    waiting = make_operation(web.engine, waits, now_of(web) - HOUR, app=app)
    ids = [*make_runs(web), str(waiting)]
    first = client.get(RUNS, params={"sort": sort, "limit": 2}).json()

    later = now_of(web) + HOUR
    running = {"state": "running", "worker": "w", "heartbeat_at": later}
    began = {"started_at": later, "first_started_at": later}
    update_operation(web.engine, waiting, **running, **began)
    asked = {"sort": sort, "limit": 9, "cursor": first["next"]}
    second = client.get(RUNS, params=asked).json()

    shown = [one["id"] for one in first["items"] + second["items"]]
    assert sorted(shown) == sorted(ids)
    assert str(waiting) in shown[-2:]


def test_the_newest_runs_alone_are_sorted(
    web: Web, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = make_runs(web)
    monkeypatch.setattr(ranking, "MOST_SORTED", 3)

    (page, rest) = walked(client, RUNS, sort="duration")

    assert [one["id"] for one in page + rest] == [ids[1], ids[0], ids[2]]


@pytest.mark.parametrize(
    ("path", "cursor"),
    [
        (ACTIONS, "1_a"),
        (ACTIONS, "x_1_a"),
        (RUNS, "x"),
        (RUNS, "2026-11-23T06:00:00+00:00_x_y"),
        (RUNS, "2026-11-23T06:00:00+00:00_1.0_y"),
        (RUNS, "2026-11-23T06:00:00_1.0_00000000-0000-0000-0000-000000000000"),
        # Before the first instant of UTC.
        (RUNS, "0001-01-01T00:00:00+14:00_1.0_00000000-0000-0000-0000-000000000000"),
    ],
)
def test_the_place_of_another_order_is_refused(web_on_sqlite: Web, path: str, cursor: str) -> None:
    sort = "next" if path == ACTIONS else "duration"
    client = web_on_sqlite.client(Role.ADMIN, APP)

    refused = client.get(path, params={"sort": sort, "cursor": cursor})

    assert refused.status_code == 409
    assert "use `next` of the previous page" in refused.json()["detail"]
