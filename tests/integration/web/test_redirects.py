"""A path with a slash too many leads to the right one, on this server."""

from models.roles import Role
from tests.integration.web.conftest import Web

LEADS_TO = {
    "/api/apps/": "/api/apps",
    "/api/actions/?limit=3&app=x": "/api/actions?limit=3&app=x",
    "/actions/": "/actions",
    "/api/apps///": "/api/apps",
    "/api/apps/a%20b%0d%0aX:%20y/": "/api/apps/a%20b%0D%0AX%3A%20y",
}


def test_a_redirect_names_no_host(web_on_sqlite: Web) -> None:
    client = web_on_sqlite.client(Role.VIEWER)

    for path, location in LEADS_TO.items():
        answer = client.get(path, headers={"Host": "evil.example"}, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (307, location)
        assert "evil.example" not in f"{answer.headers}{answer.text}"


def test_no_redirect_leads_to_another_server(web_on_sqlite: Web) -> None:
    client = web_on_sqlite.client(Role.VIEWER)

    for path in ("//evil.example/", "//evil.example/actions", "/%2F/a/"):
        answer = client.get(f"{web_on_sqlite.url}{path}", follow_redirects=False)
        assert not answer.headers.get("location", "/").startswith("//")


def test_a_path_of_nothing_is_not_found(web_on_sqlite: Web) -> None:
    assert web_on_sqlite.client(Role.VIEWER).get("/api/nothing/").status_code == 404
