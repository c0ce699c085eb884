"""Routers of the endpoints, and the threads that only workers' requests use."""

from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar
from fastapi import APIRouter
from fastapi.routing import APIRoute

# Requests served at once; each takes a database connection.
THREADS = 12
WORKER_THREADS = 4
WORKERS = ThreadPoolExecutor(WORKER_THREADS, "worker requests")
_worker_threads: RunVar[CapacityLimiter] = RunVar("worker_threads")

P = ParamSpec("P")
T = TypeVar("T")


def endpoints(tag: str, prefix: str = "") -> APIRouter:
    """Return a router."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        generate_unique_id_function=_name,
        strict_content_type=False,
    )


def _name(route: APIRoute) -> str:
    return route.name


def worker_threads() -> CapacityLimiter:
    """Return the limit of the threads that serve workers, in the event loop of this thread."""
    try:
        return _worker_threads.get()
    except LookupError:
        made = CapacityLimiter(WORKER_THREADS)
        _worker_threads.set(made)
        return made


def for_workers(endpoint: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Let an endpoint, which is no coroutine, run in a thread of the workers.

    All other requests share FastAPI's threads: however many of them there are and however long
    they take, a worker keeps its lease.
    """

    @wraps(endpoint)
    async def answer(*arguments: P.args, **named: P.kwargs) -> T:
        call = partial(endpoint, *arguments, **named)
        return await anyio.to_thread.run_sync(call, limiter=worker_threads())

    return answer
