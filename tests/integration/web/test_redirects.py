"""No answer leads to the host that a request names, or to another server."""

from models.roles import Role
from tests.integration.web.conftest import Web

WITH_A_SLASH_TOO_MANY = ("/api/apps/", "/api/actions/?limit=3&app=x", "/actions/", "/api/apps///")


def test_a_path_with_a_slash_too_many_is_not_found(site: Web) -> None:
    client = site.client(Role.VIEWER)

    for path in WITH_A_SLASH_TOO_MANY:
        answer = client.get(path, headers={"Host": "evil.example"}, follow_redirects=False)
        assert answer.status_code == 404
        assert "evil.example" not in f"{answer.headers}{answer.text}"


def test_no_redirect_leads_to_another_server(site: Web) -> None:
    client = site.client(Role.VIEWER)

    for path in ("//evil.example/", "//evil.example/actions", "/%2F/a/"):
        answer = client.get(f"{site.url}{path}", follow_redirects=False)
        assert not answer.headers.get("location", "/").startswith("//")
