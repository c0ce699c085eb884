"""A client that goes away in the middle of its request is no fault of the server."""

import logging
import socket
from itertools import product
from urllib.parse import urlsplit

import pytest

from tests.integration.web.conftest import Web

PATHS = ("/sign-in", "/jobs/0123456789ab/complete", "/api/actions", "/api/apps/shop", "/nothing")


def abort(url: str, request: bytes) -> None:
    """Send a part of a request, and close the connection."""
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as opened:
        opened.sendall(request)


@pytest.mark.parametrize("token", ["", "Authorization: Bearer {token}\r\n"], ids=["", "token"])
def test_no_aborted_request_logs_a_traceback(
    site: Web, caplog: pytest.LogCaptureFixture, token: str
) -> None:
    caplog.set_level(logging.INFO)
    own = token.format(token=site.token())
    bodies = {"Content-Length: 100": "token=x", "Transfer-Encoding: chunked": "5\r\ntoken"}

    for method, path, length in product(("POST", "PUT"), PATHS, bodies):
        form = "Content-Type: application/x-www-form-urlencoded\r\n" if path == "/sign-in" else ""
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\n{own}{form}{length}"
        abort(site.url, f"{head}\r\n\r\n{bodies[length]}".encode())

    assert site.client().get("/healthz").status_code in {200, 204}
    assert not [one for one in caplog.records if one.exc_info or one.levelno >= logging.ERROR]
