"""Spans of OpenTelemetry, with the extra `otel` and an exporter in the environment; else nothing.

The trace of an operation has the operation's id, which is a UUID of 128 bits: the tick that sends
it, each attempt, its steps, the task it hands over and its webhooks are in one trace, and no
message of ours need carry it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

from runtime.logs.events import EventLog

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import SpanContext, TracerProvider

logger = EventLog("minutebook.tracing")

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
NAME = "minutebook"


class _Tracing:
    """The provider of this process; None while nothing is traced."""

    provider: "TracerProvider | None" = None


def set_up_tracing(process: str) -> None:
    """Send spans from now on, if the environment names where to; else import nothing."""
    if _Tracing.provider or not any(os.environ.get(name) for name in ENDPOINTS):
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        logger.warning(
            "tracing_off",
            "nothing is traced, see the extra otel in docs/how-to/install.md: {error}",
            error,
        )
        return
    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": NAME}
    provider = TracerProvider(resource=Resource.create({**named, "minutebook.process": process}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace_with(provider)


def trace_with(provider: "TracerProvider | None") -> None:
    """Give spans to a provider; None for no spans."""
    _Tracing.provider = provider


def flush_spans(**_: object) -> None:
    """Send the spans that wait, because a process of a pool ends without notice."""
    flush = getattr(_Tracing.provider, "force_flush", None)
    if flush is not None:
        flush(2_000)


@contextmanager
def span(name: str, operation: UUID | None = None, **attributes: Any) -> Iterator[dict[str, Any]]:
    """Measure the block as a span; the entries of the yielded dict become its attributes.

    `operation` places it in that operation's trace, unless it is in it already. An error sets the
    span's status, and its text stays out of it: it may name what a trace must not show.
    """
    found: dict[str, Any] = {}
    if _Tracing.provider is None:
        yield found
        return
    from opentelemetry.trace import Status, StatusCode

    tracer = _Tracing.provider.get_tracer(NAME)
    quiet = {"record_exception": False, "set_status_on_exception": False}
    with tracer.start_as_current_span(name, _context_of(operation), **quiet) as one:  # type: ignore[arg-type]
        try:
            yield found
        except BaseException:
            one.set_status(Status(StatusCode.ERROR))
            raise
        finally:
            own = {} if operation is None else {"operation": str(operation)}
            for key, value in {**own, **attributes, **found}.items():
                one.set_attribute(f"minutebook.{key}", value)


def trace_headers(operation: UUID | None = None) -> dict[str, str]:
    """Return the header `traceparent` of an operation, or of the span around; else nothing."""
    if _Tracing.provider is None:
        return {}
    from opentelemetry.trace import get_current_span

    at = get_current_span().get_span_context()
    if operation is not None and at.trace_id != operation.int:
        at = _root(operation)
    if not at.is_valid:
        return {}
    return {"traceparent": f"00-{at.trace_id:032x}-{at.span_id:016x}-{int(at.trace_flags):02x}"}


def _context_of(operation: UUID | None) -> "Context | None":
    """Return the context of an operation's trace; None for the current one."""
    from opentelemetry.trace import NonRecordingSpan, get_current_span, set_span_in_context

    inside = get_current_span().get_span_context()
    if operation is None or inside.trace_id == operation.int:
        return None
    return set_span_in_context(NonRecordingSpan(_root(operation)))


def _root(operation: UUID) -> "SpanContext":
    """Return the root of an operation's trace, which every process derives from the id."""
    from opentelemetry.trace import SpanContext, TraceFlags

    first_half = operation.int >> 64
    return SpanContext(operation.int, first_half, is_remote=True, trace_flags=TraceFlags(1))
