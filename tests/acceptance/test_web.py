"""`minutehand web` as a process: stopped while it is listened to, killed, beside others."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from runtime.clock import wait_for
from tests.acceptance.installation import Installation
from tests.factories import make_document

STARTS_WITHIN_S = 60


@pytest.fixture
def token(home: Installation) -> str:
    """A token of the installation's admin."""
    made = home.processes.run(home.command("token", "create", "--role", "admin", "--json"))
    return str(json.loads(made.stdout)["token"])


@contextmanager
def client(home: Installation, port: int, token: str) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=30) as made:
        yield made
