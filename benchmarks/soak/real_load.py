"""Minutes of real load: two daemons and a worker, while a long history is pruned."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any
from uuid import UUID, uuid4

import psutil
import sqlalchemy as sa

from benchmarks.filling import MINUTE, analyze, bulk_insert, document, instant
from benchmarks.harness import Database, Stack, process, until
from benchmarks.soak.findings import Finding, at_most, equals, stays_flat
from minutebook.steps import SmallApp
from runtime.clock import monotonic
from runtime.database import reading
from scheduler.changes.change import Changed, create_all
from scheduler.changes.validation import ChangeContext
from tasks.registry import Registry

STEPS = "benchmarks.worker_tasks"
TICK_S = 5
SAMPLE_S = 2.0
SLACK_MB = 8.0
LATE_S = 1.0
OLD = timedelta(days=100)
DAEMONS, CHILDREN = 2, 2
# Each due occurrence becomes an operation, however long the machine was busy.
POLICY = {"catch_up": "all", "overlap": "allow", "look_back": "PT1H"}
QUEUES = ["--queues", "quick", "--concurrency", str(CHILDREN)]


@dataclass(frozen=True)
class Load:
    """How many actions are due every five seconds, beside how long a history."""

    minutes: float
    actions: int
    history: int


@dataclass
class Samples:
    """What is measured every two seconds."""

    memory_mb: dict[str, list[float]] = field(default_factory=dict)
    table_mb: list[float] = field(default_factory=list)
    dead: list[float] = field(default_factory=list)


def carry(stack: Stack, load: Load) -> list[Finding]:
    """Run the processes under load; return what was found."""
    database, made = _filled(stack, load)
    quick = {"SCHED_SCHEDULER_TICK_SECONDS": str(TICK_S), "SCHED_STEP_MODULES": STEPS}
    environment = database.environment(**quick, SCHED_LOG_LEVEL="WARNING")
    samples = Samples()
    with ExitStack() as running:
        log = database.settings.home
        pids = {
            "worker": [_start(running, ["-m", "minutebook", "worker", *QUEUES], environment, log)]
        }
        command = ["scheduler_server.py"]
        pids["daemons"] = [_start(running, command, environment, log) for _ in range(DAEMONS)]
        until(lambda: database.count("SELECT count(*) FROM ticks") > 0, "the first tick")
        for _ in _until(load.minutes * 60):
            _sample(database, pids, samples)
        _stop_making_due(database)
        until(lambda: _unended(database) == 0, "the end of all operations")
    found = [*_ticks(database), *_occurrences(database, made), *_tables(database, samples)]
    found += [
        stays_flat(f"load: memory of the {role}", values, "MB", SLACK_MB)
        for role, values in samples.memory_mb.items()
    ]
    stack.drop(database)
    return found


def _filled(stack: Stack, load: Load) -> tuple[Database, list[Changed]]:
    database = stack.empty()
    app, tick = SmallApp(1, "default", "UTC"), timedelta(seconds=TICK_S)
    author = ChangeContext("soak", app, Registry((STEPS,)).steps, tick)
    every = {"every": f"PT{TICK_S}S", "starting_at": "2026-01-01T00:00:00Z"}
    documents: list[dict[str, Any]] = [
        document(f"load {number}", every, "do_nothing") | {"policy": POLICY}
        for number in range(load.actions)
    ]
    when = {"cron_rule": "* * * * *", "timezone": "UTC"}
    made = create_all(database.engine, [*documents, document("prune", when)], author)
    _fill_history(database, made[0].uid, load.history)
    return database, made


def _fill_history(database: Database, uid: UUID, number: int) -> None:
    """Store ended operations that are older than they are kept."""
    old = database.now - OLD
    bulk_insert(
        database.engine,
        "operations",
        "id small_app_id action_uid revision occurrence_at state triggerer queue task recorded_at "
        "not_before worker started_at finished_at steps",
        (
            (
                *(str(uuid4()), 1, str(uid), 1, instant(old - n * MINUTE), "success", "soak"),
                *("quick", "execute_scheduled_action_quick", *[instant(old)] * 2, "w"),
                *(instant(old), instant(old), '[{"name":"do_nothing","state":"success"}]'),
            )
            for n in range(number)
        ),
    )
    analyze(database.engine, "operations")


def _start(running: ExitStack, command: list[str], environment: dict[str, str], log: Any) -> int:
    started = process(command, environment, log / f"{uuid4()}.log")
    return running.enter_context(started).pid


def _until(seconds: float) -> Iterator[None]:
    """Yield every two seconds until the time is over."""
    end, pause = monotonic() + seconds, Event()
    while monotonic() < end:
        pause.wait(SAMPLE_S)
        yield


def _sample(database: Database, pids: dict[str, list[int]], samples: Samples) -> None:
    for role, those in pids.items():
        trees = [[one, *one.children(recursive=True)] for one in map(psutil.Process, those)]
        resident = sum(one.memory_info().rss for tree in trees for one in tree) / 1e6
        samples.memory_mb.setdefault(role, []).append(resident)
    size = database.count("SELECT pg_total_relation_size('operations')")
    samples.table_mb.append(size / 1e6)
    dead = "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'operations'"
    samples.dead.append(database.count(dead))


def _stop_making_due(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(sa.text("UPDATE action_cursor SET next_occurrence_at = '2099-01-01'"))


def _unended(database: Database) -> int:
    states = "('pending', 'queued', 'running')"
    return database.count(f"SELECT count(*) FROM operations WHERE state IN {states}")


def _ticks(database: Database) -> list[Finding]:
    """Look for ticks that were late, and for slots of five seconds without any."""
    with reading(database.engine) as connection:
        ats: list[datetime] = list(connection.execute(sa.text("SELECT now FROM ticks")).scalars())
    seconds = sorted(at.astimezone(UTC).timestamp() for at in ats)
    slots = {int(at // TICK_S) for at in seconds}
    wanted = max(slots) - min(slots) + 1
    # A daemon's first tick is at its start.
    late = max((at % TICK_S for at in seconds[DAEMONS:]), default=0.0)
    return [
        equals(f"load: instants of {TICK_S} s with a tick", len(slots), wanted),
        at_most("load: latest tick", late, LATE_S, "s"),
    ]


def _occurrences(database: Database, made: list[Changed]) -> list[Finding]:
    """Compare what ran with what was due up to each action's watermark."""
    uid = "action_uid = ANY(:uids)"
    # Due every five seconds: one operation for each between the first and the last.
    gaps = (
        f"SELECT coalesce(sum(wanted - found), 0) FROM (SELECT count(*) AS found, 1 + extract(epoch"
        f" FROM max(occurrence_at) - min(occurrence_at)) / {TICK_S} AS wanted FROM operations"
        f" WHERE {uid} AND recorded_at > :since GROUP BY action_uid) AS each"
    )
    other = f"SELECT count(*) FROM operations WHERE {uid} AND state <> 'success'"
    given = {"uids": [one.uid for one in made[:-1]], "since": database.now - MINUTE}
    with reading(database.engine) as connection:
        lost = int(connection.execute(sa.text(gaps), given).scalar_one())
        failed = int(connection.execute(sa.text(other), given).scalar_one())
        ran = database.count("SELECT count(*) FROM operations WHERE triggerer <> 'soak'")
    return [
        equals(f"load: occurrences without an operation, of {ran:,}", lost, 0),
        equals("load: operations that did not succeed", failed, 0),
    ]


def _tables(database: Database, samples: Samples) -> list[Finding]:
    left = database.count("SELECT count(*) FROM operations WHERE triggerer = 'soak'")
    most = max(samples.dead[len(samples.dead) // 2 :])
    rows = database.count("SELECT count(*) FROM operations")
    return [
        equals("load: operations that pruning left of the old ones", left, 0),
        stays_flat("load: operations with their indexes", samples.table_mb, "MB", SLACK_MB),
        at_most("load: dead rows between two vacuums", most, 0.5 * rows + 10_000, "rows"),
    ]
