"""Simulated days: each tick, operation and pruning of them, by a clock that is set."""

import gc
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psutil
import sqlalchemy as sa

from benchmarks.filling import document
from benchmarks.harness import Database, Stack
from benchmarks.soak.findings import Finding, equals, stays_flat
from minutebook.steps import SmallApp
from models.operation import OperationState
from models.tables import operations
from runtime.database import reading
from runtime.sections.processes import RetentionSettings
from scheduler.changes.change import create_all
from scheduler.changes.validation import ChangeContext
from scheduler.loop import Daemon
from tasks.execute import run_attempt
from tasks.registry import Registry, registry_of
from tests.virtual_clock import VirtualClock

STEPS = ("benchmarks.worker_tasks",)
START = datetime(2027, 1, 4, tzinfo=UTC)
DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
# A rule and how often it is due in a day.
RULES = {"*/15 * * * *": 96, "0 * * * *": 24, "0 */6 * * *": 4, "0 3 * * *": 1}
ACTIONS = 4
MAINTENANCE = "0 4 * * *"
# A tick that comes late has all quarters of its hours to send.
POLICY = {"catch_up": "all", "look_back": "PT2H"}
SLACK_MB = 4.0


@dataclass
class Samples:
    """What is measured at the end of each day."""

    memory_mb: list[float] = field(default_factory=list)
    rows: list[float] = field(default_factory=list)
    table_mb: list[float] = field(default_factory=list)


def simulate(stack: Stack, days: int, tick_minutes: int) -> list[Finding]:
    """Run `days` with a tick every `tick_minutes`; return what was found."""
    database = _filled(stack, days)
    clock = VirtualClock(database.engine, START)
    daemon = Daemon(database.engine, database.settings, Registry(STEPS).steps)
    daemon.prepare()
    samples, step = Samples(), timedelta(minutes=tick_minutes)
    broken = missed = 0
    for day in range(days):
        for number in range(1, DAY // step + 1):
            clock.set(START + day * DAY + number * step)
            report = daemon.tick_once()
            missed += report.missed + report.set_aside
            broken += _work(stack, database)
        _sample(database, samples)
    ran = database.count("SELECT sum(run_number) FROM action_state")
    due = days * (ACTIONS * sum(RULES.values()) + 1)
    found = [
        equals("simulated: occurrences that ran, each once", ran, due),
        equals("simulated: missed occurrences and quarantined actions", missed, 0),
        equals("simulated: operations that did not succeed", broken, 0),
        stays_flat("simulated: memory", samples.memory_mb, "MB", SLACK_MB),
        stays_flat("simulated: rows of operations and ticks", samples.rows, "rows", 100),
        stays_flat("simulated: tables with their indexes", samples.table_mb, "MB", SLACK_MB),
    ]
    stack.drop(database)
    return found


def _filled(stack: Stack, days: int) -> Database:
    """Return a database that keeps a sixth of the days, with its actions."""
    database = stack.empty()
    kept = max(1, days // 6)
    retention = RetentionSettings(operations_days=kept, ticks_days=min(7, kept))
    database.settings = database.settings.model_copy(update={"retention": retention})
    with database.engine.begin() as connection:
        # What took a month happens in minutes: the disk need not keep up.
        name = database.settings.home.name
        connection.exec_driver_sql(f"ALTER DATABASE {name} SET synchronous_commit = off")
    author = ChangeContext("soak", SmallApp(1, "default", "UTC"), Registry(STEPS).steps)
    documents: list[dict[str, Any]] = [
        document(f"{rule} {number}", {"cron_rule": rule, "timezone": "UTC"}, "do_nothing")
        | {"policy": POLICY}
        for rule in RULES
        for number in range(ACTIONS)
    ]
    when = {"cron_rule": MAINTENANCE, "timezone": "UTC"}
    made = create_all(database.engine, [*documents, document("prune", when)], author)
    with database.engine.begin() as connection:
        # The simulation begins at another instant than this one.
        connection.execute(
            sa.text("UPDATE action_cursor SET watermark = :at, effective_from = :at"), {"at": START}
        )
        connection.execute(sa.text("UPDATE revisions SET effective_from = :at"), {"at": START})
    assert len(made) == len(RULES) * ACTIONS + 1
    return database


def _work(stack: Stack, database: Database) -> int:
    """Run what was sent, as a worker does; return how many did not succeed."""
    registry, broken = registry_of(STEPS), 0
    while ids := _queued(database):
        for id, attempt in ids:
            state = run_attempt(
                database.engine, database.settings, registry, (id, attempt), "soak:1"
            )
            broken += state not in {OperationState.SUCCESS, "waits", "taken"}
    with stack.broker.client() as client:
        client.delete("minutebook.quick", "minutebook.heavy")
    return broken


def _queued(database: Database) -> list[tuple[UUID, int]]:
    query = sa.select(operations.c.id, operations.c.attempt).where(
        operations.c.state == OperationState.QUEUED, operations.c.waiting_for.is_(None)
    )
    with reading(database.engine) as connection:
        return [(row.id, row.attempt) for row in connection.execute(query)]


def _sample(database: Database, samples: Samples) -> None:
    gc.collect()
    samples.memory_mb.append(psutil.Process().memory_info().rss / 1e6)
    both = "(SELECT count(*) FROM operations) + (SELECT count(*) FROM ticks)"
    samples.rows.append(database.count(f"SELECT {both}"))
    sizes = "sum(pg_total_relation_size(oid))"
    tables = "FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    samples.table_mb.append(database.count(f"SELECT {sizes} {tables}") / 1e6)
