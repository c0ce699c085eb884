"""Routers of the endpoints, and the threads that only workers' requests use."""

from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.convertors import StringConvertor, register_url_convertor

# Requests served at once; each takes a database connection. Of twelve at once, each takes up to a
# third more processor time: threads that read wait for one another's turns.
THREADS = 6
# However many other requests there are and however long they take, a worker keeps its lease.
WORKER_THREADS = 4
WORKERS = ThreadPoolExecutor(WORKER_THREADS, "worker requests")


class _Part(StringConvertor):
    """A part of a path that varies; `web.middleware.QuotedPath` quotes the path of a request."""

    def convert(self, value: str) -> str:
        return unquote(value)


# For each `{name}` in the path of an endpoint.
register_url_convertor("str", _Part())


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
