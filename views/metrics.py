"""What `/metrics` shows: a table of metrics, and their samples as the database has them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

import sqlalchemy as sa

from models.operation import OUTCOMES
from models.sql import read_clock
from models.store import measures, presence, ticks, totals
from models.store.scope import WHOLE_INSTALLATION
from models.store.totals.amounts import BUCKETS, INSTALLATION, SUM, Key
from runtime.database import reading
from views.installation import Installation
from views.verdict import verdict_in

# Counters of each small app that stand at 0 before there is anything to count, with their other
# label: Prometheus sees no increase in a series that begins with what it should have counted.
FROM_ZERO: tuple[tuple[str, tuple[str, ...]], ...] = (
    *(("operations_ended_total", (state.value,)) for state in sorted(OUTCOMES)),
    ("occurrences_missed_total", ()),
    ("deliveries_total", ("failed",)),
    ("notices_total", ("failed",)),
)
# Stands for the small apps, queues and steps beyond those that have series of their own.
OTHER = "(other)"
MOST_LABELS = 100
MOST_DUE = 10_000
TIMEOUT_S = 10


class Kind(StrEnum):
    """A type of Prometheus."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Metric(NamedTuple):
    """A metric without its prefix; `total` is the name of what it shows of the totals."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str
    total: str | None = None


_G, _C, _H = Kind.GAUGE, Kind.COUNTER, Kind.HISTOGRAM
_APP = ("app",)
# Metrics that every web process answers alike, because they are in the database.
METRICS = (
    Metric("database_up", _G, (), "1 if the database answered this scrape, else 0."),
    Metric("last_tick_age_seconds", _G, (), "Time since the last tick ended."),
    Metric("last_tick_duration_seconds", _G, (), "How long the last tick took."),
    Metric("daemon_up", _G, (), "1 if a daemon ended a tick within the last two, else 0."),
    Metric("broker_up", _G, (), "1 if the last tick could send, 0 if the broker was unavailable."),
    Metric("clock_skew_seconds", _G, (), "Largest skew of a machine's clock from the database's."),
    Metric("workers", _G, ("queue",), "Live workers that consume a queue."),
    Metric("worker_slots", _G, ("queue",), "Operations that those workers run at once."),
    Metric("operations", _G, ("app", "queue", "state"), "Operations that wait or run now."),
    Metric("oldest_waiting_age_seconds", _G, ("queue",), "Age of the oldest unstarted operation."),
    Metric("findings", _G, ("kind", "severity"), "What the verdict found: `minutebook status`."),
    Metric("operations_overdue", _G, _APP, "Unstarted after SCHED_ALERT_OVERDUE_MINUTES."),
    Metric("leases_expired", _G, (), "Running operations whose worker is silent."),
    Metric("actions", _G, ("app", "state"), "Actions: active, paused or quarantined."),
    Metric("actions_due", _G, (), "Actions that the next tick decides; at most 10,000."),
    Metric("alerts_open", _G, ("app", "reason"), "Actions with an open alert: failing or overdue."),
    Metric("notices_owed", _G, _APP, "Hooks and alerts that are not delivered yet."),
    Metric("backfills_active", _G, (), "Backfills in progress."),
    Metric("data_refresh_age_seconds", _G, _APP, "Age of the app's oldest refreshed domain."),
    Metric("data_publish_age_seconds", _G, _APP, "Age of the app's oldest published domain."),
    Metric("database_size_bytes", _G, (), "Size of the database on disk."),
    Metric("operations_ended_total", _C, ("app", "state"), "Operations that ended.", "ended"),
    Metric("occurrences_missed_total", _C, _APP, "Occurrences too late or overtaken.", "missed"),
    Metric("deliveries_total", _C, ("app", "state"), "Mails of ended operations.", "deliveries"),
    Metric("notices_total", _C, ("app", "state"), "Hooks and alerts that ended.", "notices"),
    Metric("tick_work_total", _C, ("work",), "What ticks did.", "tick_work"),
    Metric("broker_errors_total", _C, (), "Ticks that could not send.", "broker_errors"),
    Metric("tick_duration_seconds", _H, (), "How long ticks took.", "tick"),
    Metric("tick_lag_seconds", _H, (), "From the full minute to the tick's beginning.", "tick_lag"),
    Metric("publish_duration_seconds", _H, (), "Sending all messages of a tick.", "publish"),
    Metric("operation_lateness_seconds", _H, (), "From the occurrence to the start.", "lateness"),
    Metric("operation_wait_seconds", _H, ("queue",), "From the record to the start.", "wait"),
    Metric("operation_duration_seconds", _H, ("queue",), "Last attempts that ended.", "operation"),
    Metric("step_duration_seconds", _H, ("step",), "Steps that ended.", "step"),
)
PREFIX = "minutebook_"


@dataclass
class Histogram:
    """Counts of single buckets by their upper end, and the sum."""

    counts: dict[float, float] = field(default_factory=lambda: defaultdict(float))
    sum_s: float = 0.0


Labels = tuple[str, ...]
# The label of each small app by its id.
AppLabels = Mapping[int, str]


@dataclass
class Samples:
    """The samples of each metric by their labels; counts under the same labels are added up."""

    values: dict[str, dict[Labels, float]] = field(
        default_factory=lambda: {one.name: {} for one in METRICS if one.kind is not _H}
    )
    histograms: dict[str, dict[Labels, Histogram]] = field(
        default_factory=lambda: {one.name: {} for one in METRICS if one.kind is _H}
    )

    def add(self, name: str, value: float, *labels: str) -> None:
        """Add to a sample."""
        of = self.values[name]
        of[labels] = of.get(labels, 0.0) + value

    def most(self, name: str, value: float, *labels: str) -> None:
        """Set a sample to the largest value that was given."""
        of = self.values[name]
        of[labels] = max(of.get(labels, 0.0), value)


def quick_samples(installation: Installation) -> Samples:
    """Return what changes from second to second, and all totals."""
    found = Samples()
    with _bounded(installation) as (connection, now, apps):
        _add_daemon(connection, found, installation, now)
        _add_workers(connection, found, installation)
        _add_findings(connection, found, installation)
        _add_operations(connection, found, apps, now)
        settings = installation.settings
        for row in measures.overdue(connection, settings.alert.overdue):
            found.add("operations_overdue", row.times, apps.get(row.small_app_id, OTHER))
        found.add("leases_expired", measures.leases_expired(connection, settings.worker.lease))
        found.add("actions_due", measures.due(connection, MOST_DUE))
        found.add("backfills_active", measures.backfills_active(connection))
        for row in measures.notices_owed(connection):
            found.add("notices_owed", row.times, apps.get(row.small_app_id, OTHER))
        _add_totals(found, totals.all_of(connection), apps)
    return found


def slow_samples(installation: Installation) -> Samples:
    """Return what costs more to count, and changes from minute to minute."""
    found = Samples()
    with _bounded(installation) as (connection, now, apps):
        for row in measures.actions_by_app(connection):
            found.add("actions", row.times, apps.get(row.small_app_id, OTHER), row.kind)
        for row in measures.alerts_open(connection):
            app = apps.get(row.small_app_id, OTHER)
            for reason in ("failing", "overdue"):
                found.add("alerts_open", getattr(row, reason), app, reason)
        for row in measures.data_ages(connection):
            for name, at in (("refresh", row.refreshed_at), ("publish", row.published_at)):
                if at is not None:
                    app = apps.get(row.small_app_id, OTHER)
                    found.most(f"data_{name}_age_seconds", _age_s(now, at), app)
        found.add("database_size_bytes", measures.database_bytes(connection))
    return found


@contextmanager
def _bounded(installation: Installation) -> Iterator[tuple[sa.Connection, datetime, AppLabels]]:
    """Read within a limit of time; yield the database's clock and the labels of small apps, too."""
    with reading(installation.engine) as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SET LOCAL statement_timeout = '{TIMEOUT_S}s'")
        now = read_clock(connection)
        most = installation.settings.web.metrics_apps
        names = enumerate(measures.app_names(connection).items())
        # The oldest have series of their own, so that counts only grow.
        yield connection, now, {id: name if n < most else OTHER for n, (id, name) in names}


def _age_s(now: datetime, at: datetime) -> float:
    return max(0.0, (now - at).total_seconds())


def _add_findings(connection: sa.Connection, found: Samples, installation: Installation) -> None:
    verdict = verdict_in(connection, installation.settings, WHOLE_INSTALLATION)
    severity = {one.kind.value: one.severity.value for one in reversed(verdict.findings)}
    for kind, count in verdict.counts.items():
        found.add("findings", count, kind, severity[kind])


def _add_daemon(
    connection: sa.Connection, found: Samples, installation: Installation, now: datetime
) -> None:
    within = 2 * installation.settings.scheduler.tick
    found.add("daemon_up", ticks.has_ticked(connection, "", within))
    last = ticks.last(connection)
    if last is None:
        return
    found.add("last_tick_age_seconds", _age_s(now, last["finished_at"]))
    found.add("last_tick_duration_seconds", (last["duration_ms"] or 0.0) / 1000)
    found.add("broker_up", "broker_error" not in last["report"])
    found.most("clock_skew_seconds", abs(last["report"].get("clock_skew_s", 0.0)))


def _add_workers(connection: sa.Connection, found: Samples, installation: Installation) -> None:
    live = presence.live_workers(connection, installation.settings.worker.lease)
    queues = [(row, queue.strip()) for row in live for queue in row["queues"].split(",")]
    shown = _shown(queue for _, queue in queues)
    for row, queue in queues:
        found.add("workers", 1, shown[queue])
        found.add("worker_slots", row["slots"] or 0, shown[queue])
        found.most("clock_skew_seconds", abs(row["skew_s"] or 0.0))


def _add_operations(
    connection: sa.Connection, found: Samples, apps: AppLabels, now: datetime
) -> None:
    rows = measures.operations_now(connection)
    shown = _shown(row.queue for row in rows)
    for row in rows:
        queue = shown[row.queue]
        found.add("operations", row.times, apps.get(row.small_app_id, OTHER), queue, row.state)
        if row.state != "running" and row.oldest_at is not None:
            found.most("oldest_waiting_age_seconds", _age_s(now, row.oldest_at), queue)


def _add_totals(found: Samples, stored: Iterable[tuple[Key, float]], apps: AppLabels) -> None:
    by_total = {one.total: one for one in METRICS if one.total is not None}
    known = [(by_total[key.name], key, by) for key, by in stored if key.name in by_total]
    shown = _shown(key.label for _, key, _ in known)
    for metric, key, amount in known:
        label = shown[key.label]
        if metric.kind is _H:
            its = (label,) if metric.labels else ()
            _observe(found.histograms[metric.name].setdefault(its, Histogram()), key.part, amount)
        else:
            is_of_app = key.small_app_id != INSTALLATION
            app = (apps.get(key.small_app_id, OTHER),) if is_of_app else ()
            found.add(metric.name, amount, *app, *((label,) if label else ()))
    for name, labels in FROM_ZERO:
        for label in apps.values():
            found.values[name].setdefault((label, *labels), 0.0)
    found.values["broker_errors_total"].setdefault((), 0.0)


def _observe(histogram: Histogram, part: str, amount: float) -> None:
    if part == SUM:
        histogram.sum_s += amount
    else:
        histogram.counts[float(part)] += amount


def _shown(labels: Iterable[str]) -> dict[str, str]:
    """Return each label as it is shown: those beyond the first hundred are one."""
    ordered = sorted(set(labels))
    return {one: one if n < MOST_LABELS else OTHER for n, one in enumerate(ordered)}


def buckets_of(metric: Metric) -> tuple[float, ...]:
    """Return the upper ends of a histogram's buckets."""
    return BUCKETS[metric.total or ""]
