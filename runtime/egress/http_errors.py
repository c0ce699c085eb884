"""Failures of HTTP requests in our own words: texts of libraries may hold a part of the URL."""

import os
import ssl
from collections.abc import Iterator
from http import HTTPStatus

import httpx

_REASONS = (
    (httpx.UnsupportedProtocol, "leads to a URL that is neither http nor https"),
    (httpx.InvalidURL, "is not a valid URL"),
    (httpx.TimeoutException, "did not answer in time"),
    (httpx.ConnectError, "the connection failed"),
    (httpx.NetworkError, "the connection broke"),
    (httpx.RemoteProtocolError, "the answer is incomplete or not valid HTTP"),
    (httpx.DecodingError, "the answer cannot be decoded"),
)


def reason_of(error: BaseException) -> str:
    """Return why a request failed, such as `the connection failed: Connection refused`."""
    causes = list(_chain(error))
    text = next((text for kind, text in _REASONS if isinstance(error, kind)), "the request failed")
    if any(isinstance(one, ssl.SSLCertVerificationError) for one in causes):
        return f"{text}: the TLS certificate is not valid for this server"
    if any(isinstance(one, ssl.SSLError) for one in causes):
        return f"{text}: the server does not speak TLS as expected"
    number = next((one.errno for one in causes if isinstance(one, OSError) and one.errno), None)
    return f"{text}: {os.strerror(number)}" if number else text


def status_line(status: int) -> str:
    """Return a status with its standard phrase, such as `404 Not Found`."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
