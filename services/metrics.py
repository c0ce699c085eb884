"""What `/metrics` shows: a table of gauges with their samples, and what ended lately."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa

from models.sql import read_clock
from models.store import measures
from runtime.database import reading
from runtime.plug_ins import added
from runtime.postgresql import IDLE_TRANSACTION_TIMEOUT_S
from services.installation import Installation
from services.verdict import Snapshot, assess

# Stands for the small apps, queues and steps beyond those that have series of their own.
OTHER = "(other)"
MOST_APPS = 200
MOST_LABELS = 100
TIMEOUT_S = 10
# What ended is counted once it is older than any transaction that could still hide another end: the
# database ends transactions that idle for this long.
SETTLED_AFTER = timedelta(seconds=IDLE_TRANSACTION_TIMEOUT_S)
# What ended longer than this before a reading is not counted: a server that nobody scraped for a
# month would read that month.
LONGEST = timedelta(minutes=10)


class Gauge(NamedTuple):
    """A gauge without its prefix, which every web process shows alike."""

    name: str
    labels: tuple[str, ...]
    help: str


_APP = ("app",)
GAUGES = (
    Gauge("database_up", (), "1 if the database answered this scrape, else 0."),
    Gauge("last_tick_age_seconds", (), "Time since the last tick ended."),
    Gauge("last_tick_duration_seconds", (), "How long the last tick took."),
    Gauge("daemon_up", (), "1 if a daemon ended a tick within the last two and runs, else 0."),
    Gauge("broker_up", (), "1 if the last tick could send, 0 if the broker was unavailable."),
    Gauge("clock_skew_seconds", (), "Largest skew of a machine's clock from the database's."),
    Gauge("workers", ("queue",), "Live workers that consume a queue."),
    Gauge("worker_slots", ("queue",), "Operations that those workers run at once."),
    Gauge("operations", ("app", "queue", "state"), "Operations that wait or run now."),
    Gauge("oldest_waiting_age_seconds", ("queue",), "Age of the oldest unstarted operation."),
    Gauge("findings", ("kind", "severity"), "What the verdict found: `minutebook status`."),
    Gauge("leases_expired", (), "Running operations whose worker is silent."),
    Gauge("actions", ("app", "state"), "Actions: active, paused or quarantined."),
    Gauge("alerts_open", ("app", "reason"), "Actions with an open alert: failing or overdue."),
    Gauge("notices_owed", _APP, "Hooks and alerts that are not delivered yet."),
)
PREFIX = "minutebook_"


@cache
def gauges() -> tuple[Gauge, ...]:
    """Return all gauges, those of plug-ins too."""
    return (*GAUGES, *(Gauge(one.name, _APP, one.help) for one in added("gauges")))


Labels = tuple[str, ...]
# The label of each small app by its id.
AppLabels = Mapping[int, str]


@dataclass
class Samples:
    """The samples of each gauge by their labels; counts under the same labels are added up."""

    values: dict[str, dict[Labels, float]] = field(
        default_factory=lambda: {one.name: {} for one in gauges()}
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
    """Return what changes from second to second."""
    found, settings = Samples(), installation.settings
    with _bounded(installation) as (connection, now, apps):
        _add_seen(found, assess(connection, settings))
        _add_operations(connection, found, apps, now)
        queries = measures.quick(settings.worker.lease)
        _add_all(connection, found, queries, apps, now)
    return found


def slow_samples(installation: Installation) -> Samples:
    """Return what costs more to count, and changes from minute to minute."""
    found = Samples()
    with _bounded(installation) as (connection, now, apps):
        _add_all(connection, found, measures.slow(), apps, now)
    return found


@dataclass(frozen=True, slots=True)
class Lately:
    """What ended up to `until` since an earlier reading, and the labels of small apps."""

    until: datetime
    ended: measures.EndResult
    apps: AppLabels


def ended_since(installation: Installation, counted_to: datetime | None, age_s: float) -> Lately:
    """Return what ended after `counted_to`, the `until` of the last reading.

    None at the first: then what ended after this process began, `age_s` ago.
    """
    with _bounded(installation) as (connection, now, apps):
        since, until = window(counted_to or now - timedelta(seconds=age_s), now)
        return Lately(until, measures.ended(connection, since, until), apps)


def window(counted_to: datetime, now: datetime) -> tuple[datetime, datetime]:
    """Return the span (since, until] that is to be read next; it may be empty.

    `now` is the database's clock, by which an end is dated in the transaction that writes it: 30
    seconds later that transaction is committed, or ended by the database. If the clock was set
    back, what ended ahead of it is passed over.
    """
    settled = now - SETTLED_AFTER
    since = max(settled if counted_to > now else counted_to, settled - LONGEST)
    return since, max(since, settled)


@contextmanager
def _bounded(installation: Installation) -> Iterator[tuple[sa.Connection, datetime, AppLabels]]:
    """Read within a limit of time; yield the database's clock and the labels of small apps, too."""
    with reading(installation.engine) as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SET LOCAL statement_timeout = '{TIMEOUT_S}s'")
        now = read_clock(connection)
        names = enumerate(measures.app_names(connection).items())
        # The oldest have series of their own, so that counts only grow.
        yield connection, now, {id: name if n < MOST_APPS else OTHER for n, (id, name) in names}


def _age_s(now: datetime, at: datetime) -> float:
    return max(0.0, (now - at).total_seconds())


def _add_all(
    connection: sa.Connection,
    found: Samples,
    queries: Mapping[str, measures.Query],
    apps: AppLabels,
    now: datetime,
) -> None:
    """Add what queries of gauges find: labels, the first one a small app, then a value."""
    labels: list[Any]
    for name, query in queries.items():
        for *labels, value in connection.execute(query):
            its_own = [apps.get(app, OTHER) for app in labels[:1]] + labels[1:]
            if isinstance(value, datetime):
                found.most(name, _age_s(now, value), *its_own)
            elif value is not None:
                found.add(name, value, *its_own)


def _add_seen(found: Samples, seen: Snapshot) -> None:
    """Add what a look for the verdict found: the daemon, the workers and the findings."""
    daemon, live = seen.daemon, seen.facts.readers.live
    found.add("daemon_up", daemon is not None and daemon.is_ticking)
    if daemon is not None:
        found.add("last_tick_age_seconds", _age_s(seen.now, daemon.last_tick_at))
        found.add("last_tick_duration_seconds", daemon.tick_s)
        found.add("broker_up", "broker_error" not in daemon.report)
        found.most("clock_skew_seconds", abs(daemon.clock_skew_s))
    queues = [(row, queue.strip()) for row in live for queue in row["queues"].split(",")]
    shown = _shown(queue for _, queue in queues)
    for row, queue in queues:
        found.add("workers", 1, shown[queue])
        found.add("worker_slots", row["slots"] or 0, shown[queue])
        found.most("clock_skew_seconds", abs(row["skew_s"] or 0.0))
    severity = {one.kind.value: one.severity.value for one in reversed(seen.findings)}
    for kind, count in seen.verdict.counts.items():
        found.add("findings", count, kind, severity[kind])


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


def _shown(labels: Iterable[str]) -> dict[str, str]:
    """Return each label as it is shown: those beyond the first hundred are one."""
    ordered = sorted(set(labels))
    return {one: one if n < MOST_LABELS else OTHER for n, one in enumerate(ordered)}
