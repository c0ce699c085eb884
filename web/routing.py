"""Routers of the endpoints, and the threads that only workers' requests use."""

from concurrent.futures import ThreadPoolExecutor

from fastapi import APIRouter
from fastapi.routing import APIRoute

# Requests served at once; each takes a database connection.
THREADS = 12
# However many other requests there are and however long they take, a worker keeps its lease.
WORKER_THREADS = 4
WORKERS = ThreadPoolExecutor(WORKER_THREADS, "worker requests")


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
