"""Spans, with the real SDK: an operation's trace has its id, and leaves with what it sends."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
import sqlalchemy as sa
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import minutebook
from broker.app import configure
from models.notices import Target
from runtime import tracing
from runtime.config import Settings
from scheduler.changes.change import create_all
from scheduler.loop import Daemon
from tasks.execute import run_attempt
from tasks.notices.webhook import post
from tasks.registry import Registry
from tests.celery_messages import allowing, celery_action, celery_messages
from tests.factories import STEPS, author, make_document, make_operation, rows_of
from tests.receiver import receiver
from tests.servers import Broker

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
ROOT = "00-{0.hex}-{1}-01"


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """Trace into memory."""
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracing.trace_with(provider)
    yield kept
    tracing.trace_with(None)
    provider.shutdown()


def by_name(kept: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {one.name: one for one in kept.get_finished_spans()}


@pytest.mark.usefixtures("own_steps")
def test_an_attempt_its_claim_and_its_steps_are_in_the_trace_of_the_operation(
    engine: sa.Engine, settings: Settings, spans: InMemorySpanExporter
) -> None:
    @minutebook.step("fails")
    def fails(_: minutebook.StepContext) -> None:
        raise minutebook.StepFailed("password=hunter2", permanent=True)

    registry = Registry()
    document = make_document(operations={"fails": True})
    action = create_all(engine, [document], author(registry.steps))[0]
    id = make_operation(engine, action, NOON)
    run_attempt(engine, settings, registry, (id, 1), "tests")

    found = by_name(spans)
    ours = {name: one for name, one in found.items() if name != "publish"}
    assert set(ours) == {"operation", "claim", "step fails"}
    assert {one.context.trace_id for one in ours.values() if one.context} == {id.int}
    assert not found["step fails"].status.is_ok
    attributes = dict(found["operation"].attributes or {})
    assert attributes["minutebook.state"] == "failed"
    assert attributes["minutebook.operation"] == str(id)
    assert "hunter2" not in "".join(one.to_json() for one in found.values())


def test_a_handed_over_task_carries_the_trace_of_its_operation(
    engine: sa.Engine, settings: Settings, broker: Broker, spans: InMemorySpanExporter
) -> None:
    configure(allowing(settings, "shop.*"))
    action = celery_action(engine, since=NOON - timedelta(minutes=1))
    Daemon(engine, settings, STEPS).tick_once(NOON)
    configure(settings)

    (row,) = rows_of(engine, action)
    (message,) = celery_messages(broker)
    version, trace, parent, flags = message.headers["traceparent"].split("-")
    assert (version, trace, flags) == ("00", row["id"].hex, "01")
    assert int(parent, 16)
    tick = dict(by_name(spans)["tick"].attributes or {})
    assert (tick["minutebook.decided"], tick["minutebook.sent"]) == (1, 1)


def test_a_webhook_carries_the_span_around_it(
    settings: Settings, spans: InMemorySpanExporter
) -> None:
    operation = UUID("1dd03b83-7b34-516e-8a7c-7ff8626a8a85")
    hook = settings.hook.model_copy(update={"allow_private": True})
    given = settings.model_copy(update={"hook": hook})
    with receiver() as server, tracing.span("notice", operation):
        post(Target("webhook", server.url), operation, {}, given, is_own=True)

    (span,) = spans.get_finished_spans()
    (got,) = server.got
    assert span.context is not None
    assert got.headers["traceparent"] == ROOT.format(operation, f"{span.context.span_id:016x}")


def test_without_an_exporter_nothing_is_traced_sent_or_imported() -> None:
    program = (
        "import sys, runtime.tracing as t; t.set_up_tracing('x')\n"
        "with t.span('tick') as found: found['sent'] = 1\n"
        "assert t.trace_headers() == {}\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]"
    )
    subprocess.run([sys.executable, "-P", "-c", program], check=True, env={})
