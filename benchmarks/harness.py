"""Real servers, filled databases, real processes, figures and tables for the benchmarks.

The servers are those of the tests, but durable: PostgreSQL with fsync, SQLite with synchronous
FULL, Redis with an append-only file.
"""

import argparse
import json
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any
from uuid import UUID

import psutil
import sqlalchemy as sa

from benchmarks.filling import Filling, analyze, fill_actions, park
from broker.app import configure
from models.sql import read_clock
from models.store.schema import migrate
from runtime.clock import utc_now, wait_for
from runtime.config import Settings, load_settings
from runtime.database import make_engine, plan_each_time, reading
from tests.servers import Broker, PostgreSQL, free_port, temporary_folder

ROOT = Path(__file__).resolve().parent.parent
STORES = {"postgresql": "PostgreSQL+Redis", "sqlite": "SQLite+Valkey"}
PATIENCE_S = 600.0
ANY_TIME = datetime.min.replace(tzinfo=UTC)
# An installation has its bytecode: pip writes it. Else each process would compile all of ours.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
_numbers = count(1)


@dataclass(frozen=True)
class Sizes:
    """The sizes to measure; `--small` checks that the benchmarks work."""

    actions: int = 1_000_000
    idle_ticks: int = 1_000
    due: int = 10_000
    many_due: int = 100_000
    late_actions: int = 100_000
    late_due: int = 1_000
    late_rounds: int = 12
    applied: int = 100_000
    messages: int = 500
    slept: int = 100_000
    repeats: int = 3
    tick_seconds: int = 60
    users: int = 1_000_000
    event_actions: int = 1_000
    subjects: int = 100
    simulated: int = 1_000
    mails: int = 2_000
    imported_rows: int = 1_000_000
    workers: int = 500
    job_rounds: int = 3
    job_every_s: int = 30
    read_s: int = 10
    paged_actions: int = 100_000
    paged_operations: int = 1_000_000
    page_loads: int = 40
    stored: int = 10_000
    long_history: int = 5_000_000
    beating: int = 1_000


FULL = Sizes()
SMALL = Sizes(
    *(2_000, 20, 50, 100, 300, 10, 1, 30, 10, 100, 1, 5, 500, 20, 10, 10, 10, 2_000),
    *(10, 1, 10, 1, 100, 1_000, 2, 20, 200, 20),
)


@dataclass(frozen=True)
class Figure:
    """One measured value: its name, value, unit and target."""

    what: str
    value: float
    unit: str
    aim: str = ""
    details: dict[str, Any] = field(default_factory=dict)


@dataclass
class Database:
    """A migrated database with its settings; `due` holds the uids due at every full minute."""

    settings: Settings
    engine: sa.Engine
    now: datetime
    due: list[UUID] = field(default_factory=list)

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment of a process of this installation."""
        database = self.settings.database_url.get_secret_value()
        ours = {
            "SCHED_HOME": str(self.settings.home),
            "SCHED_BROKER_URL": self.settings.broker_url.get_secret_value(),
            **({"SCHED_DATABASE_URL": database} if database else {}),
        }
        theirs = {key: value for key, value in os.environ.items() if not key.startswith("SCHED_")}
        return {**theirs, **ours, **more}

    def clock(self) -> datetime:
        """Return the database's clock."""
        with reading(self.engine) as connection:
            return read_clock(connection)

    def count(self, query: str) -> int:
        """Return the number that a query returns."""
        with reading(self.engine) as connection:
            return int(connection.execute(sa.text(query)).scalar_one())

    def forget_operations(self) -> None:
        """Remove all operations: the next run starts like the first."""
        with self.engine.begin() as connection:
            for table in ("operation_logs", "attempts", "missed_spans", "operations"):
                connection.execute(sa.text(f"DELETE FROM {table}"))
        analyze(self.engine, "operations, attempts, action_cursor")


@dataclass
class Stack:
    """A database server and a broker; one filled database is kept for later use."""

    store: str
    folder: Path
    broker: Broker
    server: PostgreSQL | None
    _filled: tuple[Filling, Database] | None = None
    _engines: list[sa.Engine] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its name in the table."""
        return STORES[self.store]

    def empty(self) -> Database:
        """Return a new, migrated database."""
        home = self.folder / f"home{next(_numbers)}"
        home.mkdir()
        environ = {"SCHED_BROKER_URL": self.broker.url}
        if self.server is not None:
            self.server.execute(f"CREATE DATABASE {home.name}")
            environ["SCHED_DATABASE_URL"] = self.server.url(home.name)
        settings = load_settings(home, environ)
        configure(settings)
        engine = make_engine(settings)
        # As the daemon does.
        plan_each_time(engine)
        self._engines.append(engine)
        migrate(engine)
        self.flush()
        return Database(settings, engine, utc_now())

    def filled(
        self,
        actions: int,
        due: int = 0,
        *,
        behind: timedelta = timedelta(minutes=1),
        when: str | None = None,
        is_parked: bool = True,
    ) -> Database:
        """Return a database with this many actions; an earlier one of the same size is reused.

        Actions of every full minute are parked: `release` makes them due.
        """
        wanted = Filling(actions, ANY_TIME, due, behind, when)
        if self._filled is not None and self._filled[0] == wanted:
            self.flush()
            return self._filled[1]
        self.drop_filled()
        made = self.empty()
        made.now = made.clock().replace(second=0, microsecond=0)
        made.due = fill_actions(made.engine, Filling(actions, made.now, due, behind, when))
        if is_parked:
            park(made.engine, made.due)
        analyze(made.engine)
        self._filled = (wanted, made)
        return made

    def drop_filled(self) -> None:
        """Remove the filled database."""
        if self._filled is not None:
            self.drop(self._filled[1])
            self._filled = None

    def drop(self, database: Database) -> None:
        """Remove a database."""
        database.engine.dispose()
        home = database.settings.home
        if self.server is not None:
            self.server.execute(f"DROP DATABASE {home.name} WITH (FORCE)")
        shutil.rmtree(home)

    def disconnect(self) -> None:
        """Close all connections to the databases."""
        for engine in self._engines:
            engine.dispose()

    def flush(self) -> None:
        """Empty the broker."""
        with self.broker.client() as client:
            client.flushall()

    def versions(self) -> dict[str, str]:
        """Return the versions of both servers."""
        with self.broker.client() as client:
            info: Any = client.info("server")
        kind = info.get("server_name", "redis")
        found = {"broker": f"{kind} {info.get(f'{kind}_version', info['redis_version'])}"}
        if self.server is None:
            return found | {"database": f"SQLite {sqlite3.sqlite_version}"}
        engine = sa.create_engine(self.server.url("postgres"))
        with engine.connect() as connection:
            version = connection.execute(sa.text("SHOW server_version")).scalar_one()
        engine.dispose()
        return found | {"database": f"PostgreSQL {str(version).split()[0]}"}


@contextmanager
def stack(store: str) -> Iterator[Stack]:
    """Start the servers of a store in a temporary folder; stop them and remove it at the end."""
    folder = temporary_folder()
    (folder / "broker").mkdir()
    broker = Broker(folder / "broker", free_port())
    server: PostgreSQL | None = None
    try:
        broker.start()
        if store == "postgresql":
            (folder / "server").mkdir(mode=0o755)
            server = PostgreSQL(folder / "server", free_port())
            server.create()
            server.start(("-c", "max_wal_size=4GB"))
        made = Stack(store, folder, broker, server)
        yield made
        made.disconnect()
    finally:
        if server is not None:
            server.stop()
        broker.stop()
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Stopwatch:
    """Wall and CPU seconds of this process between `start` and now."""

    wall_s: float = 0.0
    cpu_s: float = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measure the block."""
        wall, cpu = perf_counter(), process_time()
        yield
        self.wall_s, self.cpu_s = perf_counter() - wall, process_time() - cpu


def timed(act: Callable[[], object]) -> Stopwatch:
    """Return the time of `act()`."""
    watch = Stopwatch()
    with watch.running():
        act()
    return watch


@contextmanager
def process(
    command: Sequence[str], environment: dict[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a `minutebook` process during the block; stop it at the end."""
    with log.open("wb") as file:
        started = subprocess.Popen(
            [sys.executable, *command], env=environment, cwd=ROOT, stdout=file, stderr=file
        )
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(30)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


def until(condition: Callable[[], bool], what: str, log: Path | None = None) -> None:
    """Wait until `condition()` holds; fail with `what`, and the end of the log."""
    if not wait_for(condition, PATIENCE_S):
        tail = log.read_text()[-2000:] if log else ""
        raise RuntimeError(f"waited in vain for {what}\n{tail}")


def rss_mb(pid: int) -> float:
    """Return the resident memory of a process, in MB."""
    return float(psutil.Process(pid).memory_info().rss) / 1e6


def machine() -> dict[str, Any]:
    """Return the machine of the figures."""
    model = [
        line.split(":", 1)[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return {
        "date": utc_now().date().isoformat(),
        "cpu": model[0] if model else platform.processor(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        # Other processes on the same cores add to wall times.
        "load": round(os.getloadavg()[0], 2),
    }


Measure = Callable[[Stack, Sizes], list[Figure]]


def print_figures(store: str, figures: Sequence[Figure]) -> None:
    """Print figures as a table."""
    for one in figures:
        aim = f"aim {one.aim}" if one.aim else ""
        print(f"{store:<18}{one.what:<66}{one.value:>12,.3f} {one.unit:<8}{aim}", flush=True)
        for key, value in one.details.items():
            print(f"{'':<22}{key}: {value}", flush=True)


def run(measures: Sequence[Measure], stores: Sequence[str], sizes: Sizes) -> list[dict[str, Any]]:
    """Measure on each store; return the figures for JSON, with the servers' versions."""
    found = []
    for store in stores:
        with stack(store) as servers:
            for measure in measures:
                load = round(os.getloadavg()[0], 2)
                figures = measure(servers, sizes)
                print_figures(servers.name, figures)
                found += [
                    {"store": servers.name, **servers.versions(), "load": load, **asdict(one)}
                    for one in figures
                ]
    return found


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    stores: list[str]
    sizes: Sizes
    output: Path | None


def arguments(description: str) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=description.split("\n", maxsplit=1)[0])
    parser.add_argument("--store", choices=STORES, help="one store only")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to check that it works")
    parser.add_argument("--output", type=Path, help="file for the figures, as JSON")
    given = parser.parse_args()
    stores = [given.store] if given.store else list(STORES)
    return Options(stores, SMALL if given.small else FULL, given.output)


def main(measure: Measure) -> None:
    """Run one benchmark from the command line."""
    options = arguments(sys.modules["__main__"].__doc__ or "")
    print(json.dumps(machine()))
    found = run([measure], options.stores, options.sizes)
    if options.output:
        options.output.write_text(json.dumps(machine() | {"figures": found}, indent=1) + "\n")


def middle(values: Sequence[float]) -> float:
    """Return the median."""
    return round(median(values), 4)


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the value that `percent` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]
