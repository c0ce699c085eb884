"""Lists come in pages: one costs as much as what it shows, and all of them lose nothing."""

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

import minutebook
from cli.remote.server import Remote
from models.job import id_of
from models.roles import Role
from models.store.actions.search import ActionFilter
from runtime.config import Settings
from services import backend, changes, jobs, tokens, users
from services.actions import search
from services.apps import changes as app_changes
from tests.integration.web.conftest import APP, NIGHTLY, SHOP, Serve, SiteWith, Web
from tests.statements import executed, rows_read

COUNT = 7
JOBS = [f"https://example.com/{number}" for number in range(COUNT)]
PATHS = {
    "actions": "/api/actions",
    "users": f"/api/apps/{APP}/users",
    "jobs": f"/api/apps/{APP}/jobs",
    "groups": f"/api/apps/{APP}/groups",
    "templates": f"/api/apps/{APP}/templates",
    "revisions": "/api/actions/nightly/revisions",
    "tokens": "/api/tokens",
    "apps": "/api/apps",
}
# What names a row, if not its name.
KEYS = {"users": "id", "jobs": "id", "revisions": "number", "tokens": "id"}
# Its list needs a token of the installation.
APPS = "apps"


def clients_of(web: Web) -> dict[str, httpx.Client]:
    """Return a client for each list; the one of small apps sees all of them."""
    own = web.client(Role.ADMIN, APP)
    return {kind: web.client() if kind == APPS else own for kind in PATHS}


def fill(web: Web, *groups: str) -> dict[str, list[Any]]:
    """Store some of each kind, and return the names of all, in order."""
    names = [f"app-{number}" for number in range(COUNT)]
    hello = {"subject": "Hello", "text": "Hello"}
    templates_ = [f"hello-{number}" for number in range(COUNT)]
    shop_ = {**SHOP, "templates": dict.fromkeys(templates_, hello)}
    shops = [shop_, *({"name": name, "owner": f"{name}'s"} for name in names)]
    app_changes.apply(web.opened, [("", one) for one in shops], dry_run=False)
    for number in range(COUNT):
        changes.apply(web.shop, [{**NIGHTLY, "description": f"revision {number + 2}"}])
    for _ in range(COUNT):
        tokens.create(web.shop, Role.ADMIN, None)
    jobs.import_jobs(web.shop, [("", {"url": url}) for url in JOBS])
    ids = [f"user-{number}@example.com" for number in range(COUNT)]
    users.import_rows(
        web.shop, [{"id": id, "groups": [id, *groups]} for id in ids], raises_events=False
    )
    made = sorted(id_of(url) for url in JOBS)
    return {
        "actions": sorted([*made, "maintenance", "nightly"]),
        "users": sorted([*ids, "ann@example.com"]),
        "jobs": made,
        "groups": sorted(["buyers", *groups, *ids]),
        "templates": templates_,
        "revisions": list(range(COUNT + 1, 0, -1)),
        "tokens": [one.id for one in tokens.list_tokens(web.shop, 1000).items],
        APPS: sorted([*names, APP, "default"]),
    }


def walked(client: httpx.Client, path: str, **params: str) -> list[list[dict[str, Any]]]:
    answers = [client.get(path, params={"limit": "3", **params})]
    while link := answers[-1].links.get("next"):
        answers.append(client.get(answers[-1].url.join(link["url"])))
    return [answer.json() for answer in answers]


Filled = tuple[Web, dict[str, list[Any]]]


@pytest.fixture(scope="module")
def filled(shared: Web) -> Filled:
    """A server with some of each kind, and the names of all."""
    return shared, fill(shared, "crowd")


def test_a_walk_over_the_pages_meets_each_once(filled: Filled) -> None:
    web, expected = filled
    clients, met = clients_of(web), {}

    for kind, path in PATHS.items():
        pages = walked(clients[kind], path)
        assert {len(page) for page in pages[:-1]} == {3}
        assert pages[-1]
        met[kind] = [one for page in pages for one in page]

    names = {kind: [one[KEYS.get(kind, "name")] for one in found] for kind, found in met.items()}
    assert names | {"tokens": None} == expected | {"tokens": None}
    assert set(names["tokens"]) >= set(expected["tokens"])
    # What belongs to a row of a page is not cut with the page.
    assert {"name": "crowd", "members": COUNT} in met["groups"]
    owners = {one["name"]: one["owner"] for one in met[APPS]}
    assert owners == {name: f"{name}'s" for name in names[APPS]} | {APP: None, "default": None}


def test_lists_that_are_asked_for_at_once_are_each_what_was_asked(filled: Filled) -> None:
    web, _ = filled
    own, whole = web.client(Role.VIEWER, APP), web.client(Role.VIEWER)
    asked: list[tuple[httpx.Client, dict[str, Any]]] = [
        (own, {}),
        (whole, {}),
        (whole, {"all_apps": True}),
        (own, {"limit": 2}),
        (own, {"cursor": "x"}),
    ]

    def ask(one: tuple[httpx.Client, dict[str, Any]]) -> tuple[int, bytes, str | None]:
        answer = one[0].get("/api/actions", params=one[1])
        # A next occurrence may pass between two answers.
        lasting = re.sub(rb'"next_occurrence_at":"[^"]*"', b"", answer.content)
        return answer.status_code, lasting, answer.headers.get("Link")

    expected = [*map(ask, asked)]
    with ThreadPoolExecutor(12) as threads:
        answers = [*threads.map(ask, asked * 10)]

    assert answers == expected * 10
    assert len({*expected}) == len(asked)


def test_a_list_of_actions_reads_none_of_their_documents(filled: Filled) -> None:
    """A page has up to a thousand, each of up to 256 KiB."""
    web, expected = filled
    with executed(web.engine) as statements:
        shown = web.client().get("/api/actions", params={"app": APP}).json()

    assert len(shown) == len(expected["actions"])
    assert not [one for one in statements if "actions.document," in one]


def test_a_token_of_one_small_app_lists_that_one_alone(filled: Filled) -> None:
    web, _ = filled
    client = web.client(Role.VIEWER, APP)

    [[only]] = walked(client, PATHS[APPS])

    assert only["name"] == APP
    assert client.get(PATHS[APPS], params={"cursor": "zebra"}).json() == []


def test_actions_of_one_name_in_several_small_apps_are_all_met(web: Web) -> None:
    names = ["b", "a", "c", "d", "e"]
    app_changes.apply(web.opened, [("", {"name": name}) for name in names], dry_run=False)
    for name in names:
        one = web.opened.for_request(name, is_bound=True, bearer="tests")
        changes.add(one, [{**NIGHTLY, "owner": "us"}])

    pages = walked(web.client(), "/api/actions", all_apps="true", owner="us")

    assert sorted(one["app"] for page in pages for one in page) == sorted(names)


def test_no_page_has_more_than_a_thousand(filled: Filled) -> None:
    client = filled[0].client(Role.ADMIN, APP)

    for path in PATHS.values():
        assert client.get(path, params={"limit": 1001}).status_code == 422


def test_a_page_of_documents_is_shorter(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("services.actions.search", "services.actions"):
        monkeypatch.setattr(f"{module}.MOST_DOCUMENTS", 9)
    names = [f"long {number:02}" for number in range(12)]
    changes.add(web.shop, [{**NIGHTLY, "name": name, "owner": "us"} for name in names])
    for name in names:
        changes.apply(web.shop, [{**NIGHTLY, "owner": name}])
    client = web.client(Role.VIEWER, APP)

    documents = walked(client, "/api/actions:documents", limit="1000", owner="us")
    past = walked(client, PATHS["revisions"], limit="1000")

    assert [len(page) for page in documents] == [9, 3]
    assert [one["name"] for page in documents for one in page] == names
    assert [len(page) for page in past] == [9, 4]


@pytest.mark.parametrize("cursor", ["", "x", "\0", "99999999999999999999_x", "٣_x"])
def test_a_wrong_cursor_is_refused_or_a_place_like_any_other(web: Web, cursor: str) -> None:
    client = web.client(Role.ADMIN, APP)

    found = {path: client.get(path, params={"cursor": cursor}) for path in PATHS.values()}

    assert {one.status_code for one in found.values()} <= {200, 409}
    assert found[PATHS["users"]].status_code == 200


def test_commands_and_clients_read_all_pages(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    web, expected = filled
    token = web.token(Role.ADMIN, APP)
    server = Remote(web.url, token, APP)
    monkeypatch.setattr(backend, "LARGEST_PAGE", 2)
    monkeypatch.setattr("minutebook.client.LARGEST_PAGE", "2")

    assert [one.id for one in backend.every(server, users.list_users)] == expected["users"]
    assert [one.id for one in backend.every(server, jobs.list_jobs, 3)] == expected["jobs"][:3]
    listed = backend.every(server, search.list_actions, wanted=ActionFilter())
    assert [one.name for one in listed] == expected["actions"]
    with minutebook.Client(web.url, token, app=APP) as client:
        assert [one["name"] for one in client.each("/api/actions")] == expected["actions"]
        assert [one["id"] for one in client.each(PATHS["users"])] == expected["users"]
    server.close()


def test_a_page_reads_what_it_shows(site_with: SiteWith) -> None:
    web = site_with("postgresql")
    fill(web)
    clients = clients_of(web)

    for kind, path in PATHS.items():
        with rows_read(web.engine) as read:
            clients[kind].get(path, params={"limit": 3}).raise_for_status()
        # One more says whether there is another page.
        assert max(read) == 4


def test_a_list_is_that_of_the_small_app_as_it_is_now(settings: Settings, serve: Serve) -> None:
    """A web process of a small app outlives it."""
    client = serve(settings, APP).client()
    client.post("/api/apps", json=SHOP)

    listed = client.get("/api/actions")
    deleted = client.delete(f"/api/apps/{APP}")
    gone = client.get("/api/actions")

    assert (listed.status_code, deleted.status_code, gone.status_code) == (200, 200, 404)
