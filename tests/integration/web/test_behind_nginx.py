"""The HTTP door behind a real nginx that ends TLS and serves it below a path, as the page says."""

import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from models.roles import Role
from tests.certificate import make_certificate
from tests.integration.web.conftest import SiteWith, Web
from tests.nginx import nginx
from tests.servers import free_port

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/how-to/use-the-api.md").read_text(encoding="utf-8")
[LOCATION] = re.findall(r"^```nginx\n(.*?)^```", PAGE, re.M | re.S)
BELOW = "/minutebook"
ADDRESS = "http://127.0.0.1:8265"


@pytest.fixture
def below() -> str:
    return BELOW


@pytest.fixture
def web(site_with: SiteWith, below: str) -> Web:
    behind = {"proxies": ("127.0.0.1",), "root_path": below}
    return site_with(web=behind, work={"pop_timeout_s": 0.2})


@pytest.fixture
def proxied(web: Web, tmp_path: Path) -> Iterator[httpx.Client]:
    port, certificate = free_port(), make_certificate(tmp_path)
    server = f"""server {{
        listen 127.0.0.1:{port} ssl;
        ssl_certificate {certificate};
        ssl_certificate_key {certificate};
        {LOCATION.replace(ADDRESS, web.url)}
    }}"""
    trusted = ssl.create_default_context(cafile=str(certificate))
    site = f"https://127.0.0.1:{port}"
    with nginx(server, port), httpx.Client(base_url=site, verify=trusted, timeout=30) as client:
        yield client


def bearer(web: Web, role: Role = Role.ADMIN, app: str | None = None) -> dict[str, str]:
    return {"Authorization": f"Bearer {web.token(role, app)}"}


def test_a_browser_signs_in_and_changes_something(web: Web, proxied: httpx.Client) -> None:
    own = {"Origin": str(proxied.base_url).rstrip("/")}
    asked = proxied.get(f"{BELOW}/actions")
    form = {"token": web.token(), "next": "/actions"}
    answer = proxied.post(f"{BELOW}/sign-in", data=form, headers=own)
    page = proxied.get(f"{BELOW}/actions")
    left = proxied.post(f"{BELOW}/sign-out", headers=own)

    assert asked.headers["location"] == f"{BELOW}/sign-in?next=/actions"
    assert answer.headers["location"] == f"{BELOW}/actions"
    assert answer.headers["set-cookie"].endswith(f"; Path={BELOW}; SameSite=lax; Secure")
    assert (page.status_code, left.status_code) == (200, 303)


def test_what_the_pages_load_is_found(web: Web, proxied: httpx.Client) -> None:
    page = proxied.get(f"{BELOW}/sign-in").text
    loaded = re.findall(r'(?:href|src)="([^"]*/static/[^"]+)"', page)

    assert loaded
    assert {proxied.get(one).status_code for one in loaded} == {200}
    assert proxied.get(f"{BELOW}/").headers["location"] == f"{BELOW}/sign-in?next=/"


def test_a_worker_waits_for_a_job_and_many_changes_come_at_once(
    web: Web, proxied: httpx.Client
) -> None:
    waited = proxied.get(f"{BELOW}/jobs/next", headers=bearer(web, Role.WORKER))
    # More than nginx takes by default.
    large = {"actions": [], "note": "x" * 2_000_000}
    answer = proxied.post(f"{BELOW}/api/actions:apply", json=large, headers=bearer(web))

    assert waited.status_code == 204
    assert answer.headers["content-type"].startswith("application/")


@pytest.mark.parametrize("below", ["/actions", "/apps/api"])
def test_the_path_may_begin_like_a_page(web: Web, below: str) -> None:
    listed = httpx.get(f"{web.url}{below}/api/actions", headers=bearer(web))
    here = httpx.get(f"{web.url}/api/actions", headers=bearer(web))
    asked = httpx.get(f"{web.url}{below}/actions")

    assert (listed.status_code, here.status_code) == (200, 200)
    assert asked.headers["location"] == f"{below}/sign-in?next=/actions"
