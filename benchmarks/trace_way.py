"""Count the files, functions, statements and transactions of an action from its JSON to its end.

One action is stored, made due, decided and sent by a tick, taken and ended as by a worker, and
explained, all in this process; then a tick finds nothing due. All of this is done twice, and the
second time counts: caches are warm, and nothing is imported for the first time.

files         the project's own files of which a function was called in this thread
lines         all lines of code of these files, without comments, docstrings and blank lines
functions     their functions that were called; a comprehension is a part of its function
statements    what was sent to the database, apart from BEGIN, COMMIT and ROLLBACK
transactions  those that ran a statement; without a transaction, each statement is one

On PostgreSQL it also counts the commits of whole `scheduler_server.py --once` processes.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from threading import Event
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from benchmarks.filling import document, park, release
from benchmarks.harness import ROOT, Database, Stack, arguments, machine, stack
from benchmarks.traced import Station, Trace, figures_of
from benchmarks.worker_tasks import do_nothing
from models.fingerprint import operation_id
from models.tables import action_cursor
from models.values import format_instant
from runtime.database import reading
from scheduler.loop import Daemon
from services.changes import apply
from services.explanation import explain
from services.installation import Installation
from tasks.built_in import built_in_steps
from tasks.execute import run_attempt

COLUMNS = ("files", "lines", "functions", "statements", "transactions")
STORE, NEW, DUE, IDLE = "JSON to row", "tick, new action", "tick, action due", "tick, none due"
TAKE, END, EXPLAIN = "take, until its step begins", "end, after its step", "explain"
WAY = (STORE, DUE, TAKE, END)
STILL_S = 0.25


@dataclass
class Walk:
    """An installation in which actions go their way; they are due once a day, at its start."""

    database: Database

    def __post_init__(self) -> None:
        engine, settings = self.database.engine, self.database.settings
        self.installation = Installation(settings.home)
        self.installation.__dict__.update(settings=settings, engine=engine)
        self.daemon = Daemon(engine, settings, built_in_steps())
        self.daemon.prepare()
        with reading(engine) as connection:
            uids = connection.scalars(sa.select(action_cursor.c.action_uid)).all()
        # The action that every small app has must not become due meanwhile.
        park(engine, uids)
        self.now = self.database.clock().replace(second=0, microsecond=0)

    def store(self, name: str) -> UUID:
        """Store an action by its JSON; return its uid."""
        when = {"cron_rule": f"{self.now.minute} {self.now.hour} * * *", "timezone": "UTC"}
        text = json.dumps([document(name, when, "do_nothing")])
        uid = apply(self.installation, json.loads(text)).root[0].uid
        assert uid is not None
        return uid

    def once(self, name: str) -> dict[str, Station]:
        """Let an action go its way; return what each station ran."""
        trace, engine = Trace(do_nothing.__code__, END), self.database.engine
        with trace.counting(STORE):
            uid = self.store(name)
        with trace.counting(NEW):
            self.daemon.tick_once()
        release(engine, [uid], self.now)
        with trace.counting(DUE):
            report = self.daemon.tick_once()
        assert (report.recorded, report.sent) == (1, 1)
        given = (engine, self.database.settings, self.installation.registry)
        with trace.counting(TAKE):
            end = run_attempt(*given, (operation_id(uid, self.now), 1), "worker")
        assert end == "success"
        with trace.counting(EXPLAIN):
            explain(self.installation, name, format_instant(self.now))
        with trace.counting(IDLE):
            report = self.daemon.tick_once()
        assert (report.decided, report.sent) == (0, 0)
        park(engine, [uid])
        return trace.stations


def measure(servers: Stack) -> list[dict[str, Any]]:
    """Return the figures of each station, the second time, and of the way as a whole."""
    walk = Walk(servers.empty())
    walk.once("warm")
    stations = walk.once("counted")
    rows = [figures_of(name, [one]) for name, one in stations.items()]
    rows.append(figures_of("from JSON to its end", [stations[name] for name in WAY]))
    rows.append(figures_of("all", stations.values()))
    if servers.server is None:
        return rows
    of_process = Process(walk.database, sa.create_engine(servers.server.url("postgres")))
    of_process.commits()
    release(walk.database.engine, [walk.store("one due")], walk.now)
    return [
        *rows,
        {"station": "process of one tick, one due", "transactions": of_process.commits()},
        {"station": "process of one tick, none due", "transactions": of_process.commits()},
    ]


@dataclass
class Process:
    """A daemon that starts, ticks once and ends, observed from another database."""

    database: Database
    observer: sa.Engine

    def commits(self) -> int:
        """Return how many transactions it commits, by PostgreSQL's own counter."""
        # This process must not commit meanwhile.
        self.database.engine.dispose()
        before = self._counter()
        command = [sys.executable, "scheduler_server.py", "--once"]
        given: Any = {"env": self.database.environment(), "cwd": ROOT}
        subprocess.run(command, check=True, capture_output=True, **given)
        return self._counter() - before

    def _counter(self) -> int:
        """Return the counter once it stands still: backends report what they did with a delay."""
        query = "SELECT xact_commit FROM pg_stat_database WHERE datname = :name"
        name, before, found = {"name": self.database.settings.home.name}, -1, 0
        while found != before:
            before = found
            Event().wait(STILL_S)
            with self.observer.connect() as connection:
                found = connection.execute(sa.text(query), name).scalar_one()
        return found


def main() -> None:
    """Print a table for each store; `--output` also has the names of the files."""
    options = arguments(__doc__ or "")
    found = {}
    for store in options.stores:
        with stack(store) as servers:
            found[servers.name] = measure(servers)
            print(f"{servers.name:<32}", *(f"{name:>13}" for name in COLUMNS))
            for row in found[servers.name]:
                cells = (format(row[name], ",") if name in row else "" for name in COLUMNS)
                print(f"{row['station']:<32}", *(f"{cell:>13}" for cell in cells), flush=True)
    if options.output:
        options.output.write_text(json.dumps(machine() | {"way": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
