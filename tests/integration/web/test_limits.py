"""What a client may not do: too much, too slowly, too often; and what every answer has."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import quote, urlsplit

import httpx
import pytest
import sqlalchemy as sa

from models.roles import Role
from runtime.clock import wait_for
from tests.integration.web.conftest import APP, SiteWith, Web
from tests.integration.web.jobs import URL, make_due, make_job
from tests.transactions import execute
from web import middleware

KNOWN = {"app": APP, "action": "nightly", "user": "ann@example.com", "template": "hello"}
NOT_ANSWERED_AT_ONCE = ("/jobs/next", "/healthz/ticks", "/api/doctor")


def test_a_large_body_is_refused(site_with: SiteWith) -> None:
    client = site_with(web={"max_body_mb": 1}).client(Role.EDITOR, APP)

    told = client.post("/api/actions", content=b" " * (2**20 + 1))
    streamed = client.post("/api/actions", content=(b" " * 2**16 for _ in range(20)))

    for refused in (told, streamed):
        assert refused.status_code == 413
        assert refused.headers["content-type"] == "application/problem+json"


def test_a_body_that_does_not_come_is_refused(site: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "ARRIVES_WITHIN_S", 0.5)
    with closing(HTTPConnection(urlsplit(site.url).netloc, timeout=20)) as connection:
        connection.putrequest("POST", f"/api/actions?app={APP}")
        connection.putheader("Authorization", f"Bearer {site.token()}")
        connection.putheader("Content-Length", "100")
        connection.endheaders(b'{"name": ')
        answer = connection.getresponse()

        assert answer.status == 408
        assert b"did not arrive in time" in answer.read()


def test_what_is_not_a_token_opens_nothing(shared: Web) -> None:
    text, client = shared.token(), shared.client(role=None)
    id = text.split("_")[1]
    wrong = ("x", "mbt_", "mbt__", f"mbt_{id}_", f"mbt_{id}_wrong", f"{text}x", "\u00fcx", id)

    for one in wrong:
        headers = {b"Authorization": f"Bearer {one}".encode()}
        assert client.get("/api/apps", headers=headers).status_code == 401, one


def test_a_revoked_token_opens_nothing_from_now_on(web: Web) -> None:
    admin, other = web.client(), web.client(Role.VIEWER)
    assert other.get("/api/apps").status_code == 200
    # Both may be made within the same millisecond: either comes first.
    [its] = [one for one in admin.get("/api/tokens").json() if one["role"] == "viewer"]
    assert its["last_used_at"] is not None

    revoked = admin.delete(f"/api/tokens/{its['id']}")

    assert revoked.status_code == 200
    assert other.get("/api/apps").status_code == 401
    assert admin.delete(f"/api/tokens/{its['id']}").status_code == 404


def test_a_token_ends_with_its_time_and_with_its_small_app(web: Web) -> None:
    admin = web.client()
    short = admin.post("/api/tokens", json={"role": "viewer", "expires": "PT1S"}).json()
    of_shop = web.client(Role.VIEWER, APP)
    assert of_shop.get("/api/actions").status_code == 200

    ends = "UPDATE tokens SET expires_at = created_at WHERE expires_at IS NOT NULL"
    execute(web.engine, sa.text(ends))
    admin.delete(f"/api/apps/{APP}?force=true")

    headers = {"Authorization": f"Bearer {short['token']}"}
    assert admin.get("/api/apps", headers=headers).status_code == 401
    assert of_shop.get("/api/actions").status_code == 401


def test_every_answer_has_the_headers_of_a_careful_server(shared: Web) -> None:
    client = shared.client()
    answers = [
        client.get("/api/apps"), client.get("/api/nothing"), client.put("/api/apps"),
        client.get("/api/operations/x"), client.get("/api/actions/x/next?count=0"),
    ]  # fmt: skip

    assert [one.status_code for one in answers] == [200, 404, 405, 404, 422]
    for one in answers:
        assert one.headers["x-content-type-options"] == "nosniff"
        assert one.headers["cache-control"] == "no-store"
        assert "server" not in one.headers
        assert "access-control-allow-origin" not in one.headers
    for one in answers[1:]:
        assert one.headers["content-type"] == "application/problem+json"
        assert set(one.json()) == {"type", "title", "status", "detail", "problems"}


def addresses(client: httpx.Client, value: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield what can be read: with a value in the place of each name, then of each parameter."""
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        if "get" not in methods or path.endswith(NOT_ANSWERED_AT_ONCE):
            continue
        yield re.sub(r"{\w+}", quote(value), path), {}
        known = re.sub(r"{(\w+)}", lambda name: KNOWN.get(name[1], name[0]), path)
        for one in methods["get"].get("parameters", ()):
            if one["in"] == "query":
                yield known, {"at": "2026-11-22T12:00:00Z", one["name"]: value}


@pytest.mark.parametrize("value", [r"\0", "9" * 25, "-1"])
def test_no_value_in_an_address_makes_the_server_fail(web: Web, value: str) -> None:
    client, value = web.client(), value.replace(r"\0", "\0")

    answers = [client.get(path, params=asked) for path, asked in addresses(client, value)]

    failed = [f"{one.request.url} {one.text}" for one in answers if one.is_server_error]
    assert failed == []
    assert len(answers) > 50


def test_an_error_of_ours_shows_no_trace_and_is_counted(
    site: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = site.client()
    monkeypatch.setattr("services.status.assess", lambda *_: 1 / 0)

    failed = client.get("/api/status")
    counted = re.findall(r"duration_seconds_count\{(.+)\} 1\.0", client.get("/metrics").text)

    assert failed.status_code == 500
    assert failed.json()["type"] == "urn:minutebook:problem:internal"
    assert "division" not in failed.text
    assert 'method="GET",route="/api/status",status="5xx"' in counted


def test_a_database_that_is_away_is_said_so_and_ends_nothing(
    site_with: SiteWith, request: pytest.FixtureRequest
) -> None:
    web = site_with("postgresql", work={"pop_timeout_s": 120})
    client, server = web.client(), request.getfixturevalue("postgresql")
    assert client.get("/readyz").status_code == 204
    worker = web.client(Role.WORKER)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(worker.get, "/jobs/next", timeout=120)
        assert wait_for(lambda: bool(web.app.state.dispatcher._waiting), 30)
        server.stop()
        try:
            answers = [client.get(path) for path in ("/api/apps", "/readyz", "/healthz")]
        finally:
            server.start()
        assert client.get("/api/apps").status_code == 200
        make_due(web.engine, make_job(web.engine))

        assert waiting.result(60).json()["url"] == URL

    assert [one.status_code for one in answers] == [503, 503, 204]
    assert answers[0].json()["type"] == "urn:minutebook:problem:database-unavailable"
    assert answers[0].headers["retry-after"]


def test_a_page_of_a_named_origin_may_send_each_header_that_an_endpoint_reads(
    site_with: SiteWith,
) -> None:
    origin = "https://ops.example"
    client = site_with(web={"origins": (origin,)}).client()
    paths = client.get("/openapi.json").json()["paths"].values()
    parameters = [
        one for path in paths for method in path.values() for one in method.get("parameters", ())
    ]
    read = {one["name"] for one in parameters if one["in"] == "header"}
    assert "if-match" in read

    def allowed(origin: str, **asked: str) -> bool:
        sent = {"Origin": origin, **asked}
        answer = client.request("OPTIONS" if asked else "GET", "/api/actions", headers=sent)
        return answer.status_code == 200 and "access-control-allow-origin" in answer.headers

    assert [allowed(one) for one in (origin, "https://evil.example")] == [True, False]
    method, header = "Access-Control-Request-Method", "Access-Control-Request-Headers"
    for name in {"authorization", *read}:
        assert allowed(origin, **{method: "POST", header: name}), name
