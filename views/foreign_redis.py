"""The Redis of another scheduler, for its entries to be read."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis

from models.errors import Refused

TIMEOUT_S = 10.0


@contextmanager
def foreign_redis(url: str) -> Iterator[Any]:
    """Yield a client that returns texts; raises Refused, without the URL's password."""
    try:
        client = redis.Redis.from_url(url, socket_timeout=TIMEOUT_S, decode_responses=True)
    except ValueError:
        raise Refused("the URL is not understood; write redis://HOST:PORT/0") from None
    try:
        with client:
            yield client
    except redis.RedisError as error:
        raise Refused(f"Redis cannot be read: {error}; check its URL") from None
