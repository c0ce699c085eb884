"""`minutebook web` as a process, and clients of it."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

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


@contextmanager
def client(
    installation: Installation, *addresses: str, role: str = "operator"
) -> Iterator[list[httpx.Client]]:
    """Yield a client of each address, all with the same token."""
    token = installation.cli("token", "create", "--role", role)["token"]
    headers = {"Authorization": f"Bearer {token}"}
    clients = [httpx.Client(base_url=one, headers=headers, timeout=60) for one in addresses]
    try:
        yield clients
    finally:
        for one in clients:
            one.close()
