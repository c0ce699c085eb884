"""What the certificates of servers are verified by."""

import ssl
from functools import cache

import httpx


@cache
def authorities() -> ssl.SSLContext:
    """Return the known authorities, read once in a process: to read them takes 25 ms."""
    return httpx.create_ssl_context()
