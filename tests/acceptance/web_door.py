"""`minutebook web` as a process, and a client of it."""

import re
from collections.abc import Mapping

import httpx

from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process

ADDRESS = re.compile(r"the API is at (http://127\.0\.0\.1:\d+)/api")


def start_web(
    installation: Installation, settings: Mapping[str, str] | None = None
) -> tuple[Process, str]:
    """Start a server; return it and its address when it serves."""
    web = installation.processes.start("web", installation.command("web"), settings)
    web.said("the API is at")
    found = ADDRESS.search(web.text())
    assert found is not None
    return web, found[1]


def client(installation: Installation, address: str, role: str = "operator") -> httpx.Client:
    """Return a client of an address, with a token of its own."""
    token = installation.cli("token", "create", "--role", role)["token"]
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=address, headers=headers, timeout=60)
