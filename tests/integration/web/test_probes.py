"""Probes as monitors ask for them: without a token, by GET or by HEAD."""

from tests.integration.web.conftest import Web
from tests.integration.web.test_overview import tick

ALWAYS = ("/healthz", "/readyz")
TICKS = "/healthz/ticks"


def test_a_probe_answers_head_as_get_without_a_body(site: Web) -> None:
    client = site.client(role=None)

    before = {path: client.head(path) for path in (*ALWAYS, TICKS)}
    tick(site)

    assert [one.status_code for one in before.values()] == [204, 204, 503]
    assert client.head(TICKS).status_code == 204
    assert before[TICKS].content == b""
    assert before[TICKS].headers["content-type"] == "application/problem+json"
    assert client.post("/healthz").headers["allow"] == "GET, HEAD"
