"""The application: its endpoints, its limits and its headers."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from operator import itemgetter

import anyio.to_thread
from fastapi import APIRouter, FastAPI
from fastapi.middleware.cors import CORSMiddleware

from runtime.clock import monotonic
from runtime.config import Settings
from runtime.plug_ins import added
from views.apps.public import public_statuses
from views.installation import Installation
from views.overview import overview_of
from views.overview.vitals import vitals_of
from views.status.holds import pauses_of
from web import health, metrics
from web.access import Failures, bearers_of
from web.api import actions, installation, jobs, operations, people, public
from web.api import apps as app_endpoints
from web.downloads import Places
from web.guards import BoundedBodies
from web.handout import Handout
from web.kept import Kept
from web.problems import as_json, install
from web.public import PublicStatuses
from web.routing import ByFirstWords
from web.schema import openapi_of
from web.together import Key, Together, Value
from web.turns import Turns

# Pure Python: one more would take CPU from the pages, and gain nothing.
HEAVY_AT_ONCE = 2
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
ROUTERS = (
    app_endpoints.router,
    app_endpoints.shared,
    people.router,
    actions.router,
    operations.router,
    operations.shared,
    jobs.router,
    installation.router,
    public.router,
    health.router,
    metrics.router,
)


def make_app(opened: Installation) -> FastAPI:
    """Return the application of an installation."""
    settings = opened.settings
    app = FastAPI(
        title="Minutebook",
        version="1",
        docs_url=None,
        redoc_url=None,
        # Starlette's leads to the host that the request names; see web/routing.py.
        redirect_slashes=False,
        lifespan=_lifespan,
    )
    app.state.installation = opened
    app.state.failures = Failures(settings.web.failures)
    _read_together(app)
    app.state.public_statuses = PublicStatuses(_reading(app, public_statuses))
    app.state.handout, app.state.turns = Handout(opened), Turns(HEAVY_AT_ONCE)
    app.state.overviews, app.state.vitals = Kept(overview_of), Kept(vitals_of)
    app.state.pauses, app.state.downloads = Kept(pauses_of), Places(settings.web.downloads)
    app.state.registry, durations = metrics.registry_of(opened, monotonic())
    app.openapi = lambda: openapi_of(app)  # type: ignore[method-assign]
    install(app, lambda _, error: as_json(error))
    routers = (*api_routers(), *(router for mount in added("mounts") for router in mount(app)))
    app.state.endpoints = [route for router in routers for route in router.routes]
    app.router.routes.append(ByFirstWords(app.state.endpoints))
    app.add_middleware(
        BoundedBodies, most_mb=settings.web.max_body_mb, timeout_s=settings.web.body_timeout_s
    )
    _allow_origins(app, settings)
    app.add_middleware(metrics.Timed, durations=durations)
    return app


def api_routers() -> tuple[APIRouter, ...]:
    """Return the routers of the HTTP API."""
    return (*ROUTERS, *added("endpoints"))


def _read_together(app: FastAPI) -> None:
    """Give the application the reads that requests of the same moment share."""
    app.state.bearers = Together(_reading(app, bearers_of), lambda _: None)
    app.state.states = Together(_reading(app, operations.read_states), itemgetter(0))
    app.state.shown = Together(_reading(app, operations.read_shown), itemgetter(0, 1))
    app.state.listed = Together(_reading(app, actions.read_listed), lambda page: page)
    app.state.statuses = Together(_reading(app, app_endpoints.read_status), str)


def _reading(
    app: FastAPI, read: Callable[[Installation, Collection[Key]], Mapping[Key, Value]]
) -> Callable[[Collection[Key]], Mapping[Key, Value]]:
    return lambda keys: read(app.state.installation, keys)


def stop_waiting(app: FastAPI) -> None:
    """Let the app's loop answer all workers that wait for a job, so that the server can stop.

    May be called by a signal handler or another thread.
    """
    loop: asyncio.AbstractEventLoop | None = getattr(app.state, "loop", None)
    if loop is not None and not loop.is_closed():
        loop.call_soon_threadsafe(app.state.handout.stop)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.loop = asyncio.get_running_loop()
    threads = app.state.installation.settings.web.threads
    anyio.to_thread.current_default_thread_limiter().total_tokens = threads
    handout: Handout = app.state.handout
    reader = asyncio.create_task(handout.run())
    yield
    handout.stop()
    reader.cancel()
    await handout.note_stop()


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
