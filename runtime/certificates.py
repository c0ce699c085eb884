"""The authorities by which the certificates of servers are verified."""

import ssl
from functools import cache

import httpx


@cache
def authorities() -> ssl.SSLContext:
    """Return the known authorities, read once per process, because reading them takes 25 ms."""
    return httpx.create_ssl_context()
