"""A client that goes away in the middle of its request is no fault of the server."""

import logging
import socket
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
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_an_aborted_request_logs_no_traceback(
    web: Web, caplog: pytest.LogCaptureFixture, method: str, path: str, token: str
) -> None:
    caplog.set_level(logging.INFO)
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\n{token.format(token=web.token())}"
    form = "Content-Type: application/x-www-form-urlencoded\r\n" if path == "/sign-in" else ""

    for length in ("Content-Length: 100", "Transfer-Encoding: chunked"):
        body = "token=x" if "Length" in length else "5\r\ntoken"
        abort(web.url, f"{head}{form}{length}\r\n\r\n{body}".encode())

    assert web.client().get("/healthz").status_code in {200, 204}
    assert not [one for one in caplog.records if one.exc_info or one.levelno >= logging.ERROR]
