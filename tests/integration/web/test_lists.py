"""Lists come in pages: one costs as much as what it shows, and all of them lose nothing."""

import asyncio
from collections.abc import Callable

import httpx
import pytest

import minutehand
from cli import all_apps
from cli.remote.server import Server
from models.job import id_of
from models.roles import Role
from runtime.config import Settings
from tests.integration.web.conftest import APP, NIGHTLY, Serve, Web, with_shop
from tests.statements import rows_read
from views import changes, jobs, users
from views.actions import search
from views.apps import changes as app_changes

COUNT = 7
JOBS = [f"https://example.com/{number}" for number in range(COUNT)]
PATHS = {
    "actions": "/api/actions",
    "users": f"/api/apps/{APP}/users",
    "jobs": f"/api/apps/{APP}/jobs",
}
KEYS = {"actions": "name", "users": "id", "jobs": "id"}


def fill(web: Web) -> dict[str, list[str]]:
    """Store some of each kind, and return the names of all, in order."""
    shop = web.opened.for_request(APP, is_bound=True, bearer="tests")
    jobs.import_jobs(shop, [("", {"url": url}) for url in JOBS])
    ids = [f"user-{number}@example.com" for number in range(COUNT)]
    users.import_rows(
        shop, [{"id": id, "groups": ["all of us"]} for id in ids], raises_events=False
    )
    made = sorted(id_of(url) for url in JOBS)
    return {
        "actions": sorted([*made, "maintenance", "nightly"]),
        "users": sorted([*ids, "ann@example.com"]),
        "jobs": made,
    }


def walked(client: httpx.Client, path: str, **params: str) -> list[list[dict[str, str]]]:
    answers = [client.get(path, params={"limit": "3", **params})]
    while link := answers[-1].links.get("next"):
        answers.append(client.get(answers[-1].url.join(link["url"])))
    return [answer.json() for answer in answers]


def test_a_walk_over_the_pages_meets_each_once(web: Web) -> None:
    expected = fill(web)
    client = web.client(Role.VIEWER, APP)

    for kind, path in PATHS.items():
        pages = walked(client, path)

        assert [one[KEYS[kind]] for page in pages for one in page] == expected[kind]
        assert {len(page) for page in pages[:-1]} == {3}


def test_actions_of_one_name_in_several_small_apps_are_all_met(web: Web) -> None:
    names = ["b", "a", "c", "d", "e"]
    app_changes.apply(web.opened, [("", {"name": name}) for name in names], dry_run=False)
    for name in names:
        one = web.opened.for_request(name, is_bound=True, bearer="tests")
        changes.add(one, [{**NIGHTLY, "owner": "us"}])

    pages = walked(web.client(), "/api/actions", all_apps="true", owner="us")

    assert sorted(one["app"] for page in pages for one in page) == sorted(names)


def test_no_answer_has_more_than_a_thousand(web_on_sqlite: Web) -> None:
    web = web_on_sqlite
    shop = web.opened.for_request(APP, is_bound=True, bearer="tests")
    rows = [{"id": f"user-{number:03}@example.com"} for number in range(1000)]
    users.import_rows(shop, rows, raises_events=False)
    client = web.client(Role.VIEWER, APP)

    first = client.get(PATHS["users"])
    [last] = client.get(first.url.join(first.links["next"]["url"])).json()

    assert (len(first.json()), last["id"]) == (1000, "user-999@example.com")
    for path in PATHS.values():
        assert client.get(path, params={"limit": 1001}).status_code == 422


@pytest.mark.parametrize("cursor", ["", "x", "_", "\0", "99999999999999999999_x", "1_\0", "٣_x"])
def test_a_wrong_cursor_is_refused_or_a_place_like_any_other(web: Web, cursor: str) -> None:
    client = web.client(Role.VIEWER, APP)

    found = {path: client.get(path, params={"cursor": cursor}) for path in PATHS.values()}

    assert {one.status_code for one in found.values()} <= {200, 409}
    assert found[PATHS["users"]].status_code == 200


def test_commands_and_clients_read_all_pages(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fill(web)
    token = web.token(Role.VIEWER, APP)
    server = Server(web.url, token, APP)
    monkeypatch.setattr(all_apps, "LARGEST_PAGE", 2)
    monkeypatch.setattr("minutehand.client.LARGEST_PAGE", "2")

    async def met() -> list[str]:
        async with minutehand.AsyncClient(web.url, token, app=APP) as client:
            return [one["id"] async for one in client.each(PATHS["users"])]

    assert [one.id for one in all_apps.every(server, users.list_users)] == expected["users"]
    assert [one.id for one in all_apps.every(server, jobs.list_jobs)] == expected["jobs"]
    assert [one.id for one in all_apps.every(server, jobs.list_jobs, 3)] == expected["jobs"][:3]
    listed = all_apps.every(server, search.list_actions, owner=None)
    assert [one.name for one in listed] == expected["actions"]
    with minutehand.Client(web.url, token, app=APP) as client:
        assert [one["name"] for one in client.each("/api/actions")] == expected["actions"]
    assert asyncio.run(met()) == expected["users"]
    server.close()


def test_a_page_reads_what_it_shows(home_of: Callable[[str], Settings], serve: Serve) -> None:
    web = with_shop(serve(home_of("postgresql")))
    fill(web)
    client = web.client(Role.VIEWER, APP)

    for path in PATHS.values():
        with rows_read(web.engine) as read:
            client.get(path, params={"limit": 3}).raise_for_status()
        # One more says whether there is another page.
        assert max(read) == 4
