"""Counters and histograms of `/metrics`: what ended while this web process ran."""

from collections.abc import Iterable
from datetime import datetime
from threading import Lock
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram

from models.operation import OUTCOMES, TICKED, OperationState
from models.stored import instant_in
from runtime.clock import monotonic
from runtime.plug_ins import added
from services.installation import Installation
from services.metrics import MOST_LABELS, OTHER, PREFIX, Lately, ended_since

# Upper ends of the buckets, in seconds: of what a person waits for, and of what takes long.
SHORT = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
LONG = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0)
TICK_WORK = ("decided", "recorded", "sent", "lost", "lost_messages")


class Counters:
    """Counters that start at 0 with this process, and grow when it is scraped.

    Each web process counts what the whole installation ended, so two of them must not be added up.
    """

    def __init__(self, registry: CollectorRegistry, began: float) -> None:
        """Register them; `began` is when this process began, on the monotonic clock."""

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"{PREFIX}{name}", text, labels, registry=registry)

        def histogram(
            name: str, text: str, *labels: str, ends: tuple[float, ...] = SHORT
        ) -> Histogram:
            full = f"{PREFIX}{name}_seconds"
            return Histogram(full, text, labels, registry=registry, buckets=ends)

        self._ended = counter("operations_ended", "Operations that ended.", "app", "state")
        self._missed = counter("occurrences_missed", "Occurrences too late or overtaken.", "app")
        self._counted = {
            one.name: counter(one.name, one.help, "app", "state") for one in added("counted")
        }
        self._notices = counter("notices", "Hooks and alerts that ended.", "app", "state")
        self._work = counter("tick_work", "What ticks did.", "work")
        self._broker_errors = counter("broker_errors", "Ticks that could not send.")
        self._tick = histogram("tick_duration", "How long ticks took.")
        self._lag = histogram("tick_lag", "From the full minute to the tick's beginning.")
        self._publish = histogram("publish_duration", "Sending all messages of a tick.")
        self._lateness = histogram("operation_lateness", "From the occurrence to the start.")
        self._wait = histogram("operation_wait", "From the record to the start.", "queue")
        self._run = histogram("operation_duration", "Last attempts that ended.", "queue", ends=LONG)
        self._step = histogram("step_duration", "Steps that ended.", "step", ends=LONG)
        self._queues, self._steps = Names(), Names()
        self._began = began
        self._counted_to: datetime | None = None
        # Two scrapes at once must not count the same.
        self._lock = Lock()

    def catch_up(self, opened: Installation) -> None:
        """Add what ended since the last call; if the database fails, the next call adds it."""
        with self._lock:
            found = ended_since(opened, self._counted_to, monotonic() - self._began)
            self._counted_to = found.until
            self.add(found)

    def add(self, found: Lately) -> None:
        """Add what was read."""
        self._begin(found.apps.values())
        self._add_ends(found)
        for run in found.ended.runs:
            self._add_run(run)
        for tick in found.ended.ticks:
            self._add_tick(tick.duration_ms, tick.report)

    def _begin(self, apps: Iterable[str]) -> None:
        """Let the counters of each small app begin at 0.

        Prometheus sees no increase in a series that begins with what it should have counted.
        """
        for app in apps:
            self._missed.labels(app)
            for one in self._counted.values():
                one.labels(app, "failed")
            self._notices.labels(app, "failed")
            for state in sorted(OUTCOMES):
                self._ended.labels(app, state)

    def _add_ends(self, found: Lately) -> None:
        apps = found.apps
        for row in found.ended.operations:
            app = apps.get(row.small_app_id, OTHER)
            is_missed = row.state == OperationState.MISSED
            ended = self._missed.labels(app) if is_missed else self._ended.labels(app, row.state)
            ended.inc(row.times)
        for row in found.ended.missed:
            self._missed.labels(apps.get(row.small_app_id, OTHER)).inc(float(row.times))
        for name, rows in found.ended.counted.items():
            for row in rows:
                label = apps.get(row.small_app_id, OTHER)
                self._counted[name].labels(label, row.state).inc(row.times)
        for row in found.ended.notices:
            # Those of the installation have no small app.
            self._notices.labels(apps.get(row.small_app_id, OTHER), row.state).inc(row.times)

    def _add_run(self, run: Any) -> None:
        queue = self._queues.label(run.queue)
        _observe(self._run.labels(queue), run.started_at, run.finished_at)
        if run.attempt == 1:
            _observe(self._wait.labels(queue), run.recorded_at, run.first_started_at)
            if run.cause in TICKED:
                _observe(self._lateness, run.occurrence_at, run.first_started_at)
        for step in run.steps or ():
            ends = (instant_in(step.get("started_at")), instant_in(step.get("finished_at")))
            _observe(self._step.labels(self._steps.label(step["name"])), *ends)

    def _add_tick(self, duration_ms: float, report: dict[str, Any]) -> None:
        self._tick.observe(duration_ms / 1000)
        for name, histogram in (("lag_s", self._lag), ("publish_s", self._publish)):
            if report.get(name, -1) >= 0:
                histogram.observe(report[name])
        for name in TICK_WORK:
            self._work.labels(name).inc(report.get(name, 0))
        self._broker_errors.inc("broker_error" in report)


class Names:
    """Names that have series of their own: the first hundred; the others share one."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def label(self, name: str) -> str:
        """Return the label of a name, always the same."""
        if name not in self._known and len(self._known) >= MOST_LABELS:
            return OTHER
        self._known.add(name)
        return name


def _observe(histogram: Histogram, since: datetime | None, until: datetime | None) -> None:
    """Count a span of time; None and less than 0 are none."""
    if since is not None and until is not None and until >= since:
        histogram.observe((until - since).total_seconds())
