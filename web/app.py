"""The application: its endpoints, its limits and its headers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
from fastapi import APIRouter, FastAPI
from fastapi.middleware.cors import CORSMiddleware
from starlette.types import Receive, Scope, Send

from runtime.clock import monotonic
from runtime.config import Settings
from runtime.plug_ins import added
from services import (
    audit,
    channels,
    operations,
    overview,
    runs,
    status,
    steps,
    tokens,
    users,
)
from services.doctor import environment
from services.installation import Installation
from services.runs import many
from services.status import pauses
from services.users import events
from web import health, metrics
from web.api import actions, followers, jobs
from web.api import apps as app_endpoints
from web.cache import TtlCache
from web.dispatcher import JobDispatcher
from web.downloads import DownloadSlots
from web.middleware import BoundedBodies
from web.open_requests import OpenRequests
from web.plain import answers
from web.problems import as_json, install
from web.routing import THREADS, endpoints
from web.schema import openapi_of
from web.verbs import serve


def _served(tag: str, *offered: Any) -> APIRouter:
    """Return the router of verbs whose endpoints only call them."""
    router = endpoints(tag)
    serve(router, *offered)
    return router


HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
# They stand among the endpoints as well, for OpenAPI.
PLAIN = (*followers.routes, *jobs.routes)
ROUTERS = (
    app_endpoints.router,
    _served("people", users, events),
    actions.router,
    _served("operations", operations, many, runs.cancel, runs.retry),
    jobs.router,
    followers.router,
    _served("installation", status, pauses, overview, environment, steps, audit, tokens, channels),
    health.router,
    metrics.router,
)


class _App(FastAPI):
    """Answers what many workers call often in front of all that FastAPI does with a request."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_http = scope["type"] == "http"
        if not (is_http and await answers(self, PLAIN, scope, receive, send)):
            await super().__call__(scope, receive, send)


def make_app(opened: Installation) -> FastAPI:
    """Return the application of an installation."""
    settings = opened.settings
    app = _App(
        title="Minutebook",
        version="1",
        docs_url=None,
        redoc_url=None,
        # A redirect leads to the host that the request names.
        redirect_slashes=False,
        lifespan=_lifespan,
    )
    app.state.installation = opened
    app.state.dispatcher = JobDispatcher(opened)
    app.state.overviews = TtlCache(
        lambda opened, timeline: overview.overview_of(opened, timeline=timeline)
    )
    app.state.status = TtlCache(status.status)
    app.state.pauses = TtlCache(pauses.list_pauses)
    app.state.downloads = DownloadSlots(settings.web.download_s)
    app.state.open_requests = OpenRequests()
    app.state.registry, app.state.durations = metrics.registry_of(opened, monotonic())
    app.openapi = lambda: openapi_of(app)  # type: ignore[method-assign]
    install(app, lambda _, error: as_json(error))
    routers = (*api_routers(), *(router for mount in added("mounts") for router in mount(app)))
    app.state.endpoints = [route for router in routers for route in router.routes]
    # As they are: FastAPI matches each request twice against a router that it includes.
    app.router.routes.extend(app.state.endpoints)
    app.add_middleware(BoundedBodies, most_mb=settings.web.max_body_mb)
    _allow_origins(app, settings)
    app.add_middleware(metrics.Timed, durations=app.state.durations)
    return app


def api_routers() -> tuple[APIRouter, ...]:
    """Return the routers of the HTTP API."""
    return (*ROUTERS, *added("endpoints"))


def stop_waiting(app: FastAPI) -> None:
    """Let the app's loop answer all workers that wait for a job, so that the server can stop.

    May be called by a signal handler or another thread.
    """
    loop: asyncio.AbstractEventLoop | None = getattr(app.state, "loop", None)
    if loop is not None and not loop.is_closed():
        loop.call_soon_threadsafe(app.state.dispatcher.stop)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.loop = asyncio.get_running_loop()
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    dispatcher: JobDispatcher = app.state.dispatcher
    reader = asyncio.create_task(dispatcher.run())
    yield
    dispatcher.stop()
    reader.cancel()
    await dispatcher.note_stop()


def _allow_origins(app: FastAPI, settings: Settings) -> None:
    if settings.web.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.web.origins),
            allow_methods=["*"],
            allow_headers=[
                "Authorization",
                "Content-Type",
                "Idempotency-Key",
                "If-Match",
                "If-None-Match",
            ],
            expose_headers=["ETag", "Retry-After"],
        )
