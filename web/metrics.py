"""`/metrics`, for Prometheus: how it stands, what ended, and how long answers took."""

from collections.abc import Iterable, Iterator
from typing import Annotated

import sqlalchemy as sa
from fastapi import Request, Response
from prometheus_client import (
    CollectorRegistry,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from models.roles import Permission
from runtime.clock import monotonic
from runtime.database import DATABASE_AWAY
from services import metrics
from services.installation import Installation
from services.metrics import GAUGES, PREFIX, Samples
from web.access import of_installation
from web.cache import TtlCache
from web.counters import Counters
from web.routing import endpoints

router = endpoints("health")

# One reading serves all scrapes within these times.
QUICK_S = 5.0
SLOW_S = 60.0
NO_ROUTE = "(none)"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Gauges(Collector):
    """The gauges; only `database_up`, as 0, while the database is unavailable.

    It lets the counters catch up, so it is registered before them.
    """

    def __init__(self, opened: Installation, registry: CollectorRegistry, began: float) -> None:
        registry.register(self)
        self._opened = opened
        self._counters = Counters(registry, began)
        self._quick = TtlCache(self._count_and_look)
        self._slow = TtlCache(metrics.slow_samples)

    def _count_and_look(self, opened: Installation) -> Samples:
        self._counters.catch_up(opened)
        return metrics.quick_samples(opened)

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registering must not ask the database."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield every gauge."""
        try:
            samples = self._samples()
        except (*DATABASE_AWAY, sa.exc.ProgrammingError):
            yield GaugeMetricFamily(f"{PREFIX}database_up", GAUGES[0].help, 0)
            return
        for gauge in metrics.gauges():
            family = GaugeMetricFamily(f"{PREFIX}{gauge.name}", gauge.help, labels=gauge.labels)
            for one in samples:
                for labels, value in one.values[gauge.name].items():
                    family.add_metric(labels, value)
            yield family

    def _samples(self) -> list[Samples]:
        up = Samples()
        up.add("database_up", 1)
        quick = self._quick.of(self._opened, QUICK_S)
        return [up, quick, self._slow.of(self._opened, SLOW_S)]


def note_answer(durations: Histogram, method: str, route: str, status: int, began: float) -> None:
    """Note how long an answer took that began at `began`."""
    durations.labels(method, route, f"{status // 100}xx").observe(monotonic() - began)


class Timed:
    """Middleware that measures each request up to the beginning of its answer, by its route."""

    def __init__(self, app: ASGIApp, durations: Histogram) -> None:
        self._app = app
        self._durations = durations

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = monotonic()
        is_answered = False

        def note(status: int) -> None:
            route = getattr(scope.get("route"), "path", NO_ROUTE)
            method = scope["method"] if scope["method"] in METHODS else metrics.OTHER
            note_answer(self._durations, method, route, status, began)

        async def send_timed(message: Message) -> None:
            nonlocal is_answered
            if message["type"] == "http.response.start":
                is_answered = True
                note(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, send_timed)
        except Exception:
            # Starlette answers an unexpected error outside of all middleware.
            if not is_answered:
                note(500)
            raise


def registry_of(opened: Installation, began: float) -> tuple[CollectorRegistry, Histogram]:
    """Return the metrics of a web process, and the histogram of its requests.

    `began` is when the process began, on the monotonic clock.
    """
    # Another series for each: Prometheus sees by the value that a counter began anew.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = CollectorRegistry(auto_describe=False)
    Gauges(opened, registry, began)
    durations = Histogram(
        f"{PREFIX}http_request_duration_seconds",
        "Requests of this process up to the beginning of their answers.",
        ("method", "route", "status"),
        registry=registry,
        buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    )
    ProcessCollector(registry=registry)
    return registry, durations


@router.get("/metrics", response_class=Response)
def show_metrics(
    request: Request,
    _opened: Annotated[Installation, of_installation(Permission.READ)],
) -> Response:
    """Show the figures of the whole installation, in the text format of Prometheus."""
    encode, content_type = choose_encoder(request.headers.get("accept", ""))
    return Response(encode(request.app.state.registry), media_type=content_type)
