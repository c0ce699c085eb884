"""The schedulers that stand side by side: how each is filled, started, killed and worked for.

Each has its own Redis and its own database, on one PostgreSQL server.
"""

import json
import os
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any, ClassVar
from uuid import UUID

import psutil
import redis
import sqlalchemy as sa

from benchmarks.harness import ROOT, Database, Stack
from minutebook.steps import SmallApp
from models.tables import actions, operations
from runtime.clock import utc_now, wait_for
from runtime.database import reading
from scheduler.changes.change import create_all
from scheduler.changes.validation import ChangeContext
from scheduler.loop import Daemon
from tasks.registry import Registry
from tests.servers import Broker, PostgreSQL, free_port

PYTHON = os.environ.get("PEERS_PYTHON", str(ROOT / ".venv-peers" / "bin" / "python"))
STEPS = "benchmarks.peers.steps"
THEIRS = "benchmarks.peers.theirs"
CREATED_AT_ONCE = 5_000
STOPPED_S = 30.0
ONE_AT_A_TIME = Lock()


@dataclass(frozen=True)
class Entries:
    """`count` entries with one cron rule, named with a number each."""

    name: str
    rule: str
    count: int

    def names(self) -> Iterator[str]:
        """Yield the name of each entry."""
        return (f"{self.name} {number}" for number in range(self.count))


@dataclass
class Contestant(ABC):
    """One scheduler at work: its broker, its database, its processes and its journal."""

    folder: Path
    server: PostgreSQL
    entries: Sequence[Entries] = ()
    zone: str = "UTC"
    wants_every_missed_run: bool = False
    schedulers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    title: ClassVar[str]
    package: ClassVar[str]
    queue: ClassVar[str]
    first_tick: ClassVar[bytes]
    # By their documentation: whether two may run, and whether each missed run can be wanted.
    runs_twice: ClassVar[bool]
    catches_up_all: ClassVar[bool]

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.broker = Broker(self.folder, free_port())
        self.broker.start()
        self.journal = self.folder / "journal"
        self.journal.touch()
        self.set_up()

    @abstractmethod
    def set_up(self) -> None:
        """Make the database."""

    @abstractmethod
    def fill(self) -> None:
        """Store the entries."""

    @abstractmethod
    def scheduler_command(self) -> Sequence[str]:
        """Return the command of the scheduler, without the interpreter."""

    @abstractmethod
    def worker_command(self) -> Sequence[str]:
        """Return the command of a worker, without the interpreter."""

    @abstractmethod
    def environment(self) -> Mapping[str, str]:
        """Return the variables of its processes."""

    @property
    def interpreter(self) -> str:
        """The Python of its processes."""
        return PYTHON

    def start(self) -> subprocess.Popen[bytes]:
        """Start a scheduler."""
        started = self.open(self.scheduler_command(), f"scheduler{len(self.schedulers)}")
        self.schedulers.append(started)
        return started

    def has_ticked(self) -> bool:
        """Whether the scheduler that was started last has ended its first tick."""
        log = self.folder / f"scheduler{len(self.schedulers) - 1}.log"
        if self.schedulers[-1].poll() is not None:
            raise RuntimeError(f"{self.title} ended:\n{log.read_text()[-2000:]}")
        return self.first_tick in log.read_bytes()

    def until_first_tick(self, limit_s: float) -> float | None:
        """Start a scheduler; return the seconds until its first tick ended, None at the limit."""
        began = perf_counter()
        self.start()
        has_ticked = wait_for(self.has_ticked, limit_s, poll_s=0.01)
        return perf_counter() - began if has_ticked else None

    def revive(self) -> None:
        """Start a scheduler that ended by itself again, as its service manager would."""
        for place, one in enumerate(self.schedulers):
            if one.poll() not in (None, -signal.SIGKILL):
                self.schedulers[place] = self.open(
                    self.scheduler_command(), f"scheduler{place}again"
                )

    def kill(self) -> None:
        """Kill all schedulers with SIGKILL."""
        for one in self.schedulers:
            one.kill()
            one.wait(STOPPED_S)

    def work(self) -> None:
        """Start a worker."""
        self.workers.append(self.open(self.worker_command(), "worker"))

    def open(self, command: Sequence[str], name: str, **more: str) -> subprocess.Popen[bytes]:
        """Start a process of its Python, with a log."""
        environment = {**os.environ, **self.environment(), **more}
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [self.interpreter, *command], env=environment, cwd=ROOT, stdout=log, stderr=log
            )

    def waiting(self) -> int:
        """Return how many messages wait in its queue; 0 while the broker is away."""
        with suppress(redis.RedisError), self.broker.client() as client:
            return int(client.llen(self.queue))
        return 0

    def arrived(self) -> list[tuple[str, datetime]]:
        """Return what the journal has: each entry with the instant of its arrival."""
        lines = (line.split(" ", 1) for line in self.journal.read_text().splitlines())
        return [(name, datetime.fromtimestamp(float(at), UTC)) for at, name in lines]

    def close(self) -> None:
        """End all processes."""
        for one in (*self.schedulers, *self.workers):
            with suppress(psutil.NoSuchProcess):
                for child in psutil.Process(one.pid).children(recursive=True):
                    child.kill()
            one.kill()
            one.wait(STOPPED_S)
        self.broker.stop(signal.SIGKILL)


class Peer(Contestant):
    """A scheduler of others, in their environment."""

    kind: ClassVar[str]
    queue = "celery"
    first_tick = b"first tick"
    runs_twice = False
    catches_up_all = False

    def set_up(self) -> None:
        self.database = f"{self.kind}_{self.broker.port}"
        self.server.execute(f"CREATE DATABASE {self.database}")

    def fill(self) -> None:
        self.run(["-m", f"{THEIRS}.fill"])

    def run(self, command: Sequence[str], **more: str) -> int:
        """Run a command to its end; return its exit code."""
        name = command[1].rpartition(".")[2]
        code = self.open(command, name, **more).wait()
        if code not in (0, -signal.SIGKILL):
            raise RuntimeError((self.folder / f"{name}.log").read_text()[-2000:])
        return code

    def scheduler_command(self) -> Sequence[str]:
        return [*self.celery("beat"), *self.beat_options()]

    def beat_options(self) -> Sequence[str]:
        """Return the options of `celery beat`."""
        return ("--pidfile=", "-s", str(self.folder / "beat-schedule"))

    def worker_command(self) -> Sequence[str]:
        return [*self.celery("worker"), "-P", "solo"]

    def celery(self, command: str) -> list[str]:
        """Return a command of Celery."""
        return ["-W", "ignore", "-m", "celery", "-A", f"{THEIRS}.app", command, "-l", "WARNING"]

    def environment(self) -> Mapping[str, str]:
        rows = [(one.name, one.rule, one.count) for one in self.entries]
        return {
            "PEER_KIND": self.kind,
            "PEER_ZONE": self.zone,
            "PEER_BROKER": self.broker.url,
            "PEER_DATABASE": self.server.url(self.database),
            "PEER_ENTRIES": json.dumps(rows),
            "PEER_JOURNAL": str(self.journal),
            "PEER_EVERY_MISSED_RUN": "1" if self.wants_every_missed_run else "",
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
        }


class CeleryBeat(Peer):
    title, package, kind = "celery beat", "celery", "celery"


class DjangoCeleryBeat(Peer):
    title, package, kind = "django-celery-beat", "django-celery-beat", "django"

    def beat_options(self) -> Sequence[str]:
        return ("--pidfile=", "-S", "django_celery_beat.schedulers:DatabaseScheduler")

    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), "DJANGO_SETTINGS_MODULE": f"{THEIRS}.django_settings"}


class RedBeat(Peer):
    title, package, kind = "RedBeat", "celery-redbeat", "redbeat"
    runs_twice = True

    def beat_options(self) -> Sequence[str]:
        return ("--pidfile=", "-S", "redbeat.RedBeatScheduler")


class APScheduler(Peer):
    title, package, kind = "APScheduler 3", "apscheduler", "apscheduler"
    catches_up_all = True

    def scheduler_command(self) -> Sequence[str]:
        return ["-W", "ignore", "-m", f"{THEIRS}.jobs"]


class Minutebook(Contestant):
    """The daemon of this checkout."""

    title, package = "Minutebook", "minutebook"
    queue = "minutebook.quick"
    first_tick = b" tick "
    runs_twice = True
    catches_up_all = True

    @property
    def interpreter(self) -> str:
        return sys.executable

    def set_up(self) -> None:
        # Alembic migrates one database of a process at a time.
        with ONE_AT_A_TIME:
            self._set_up()

    def _set_up(self) -> None:
        self.stack = Stack("postgresql", self.folder, self.broker, self.server)
        self.database: Database = self.stack.empty()

    def fill(self) -> None:
        self.create()
        # The first tick after a change files the new actions by their next occurrence.
        daemon = Daemon(self.database.engine, self.database.settings, steps=self.steps())
        daemon.prepare()
        daemon.tick_once()

    def create(self) -> None:
        """Store the actions."""
        author = ChangeContext("benchmarks", SmallApp(1, "default", "UTC"), self.steps())
        documents = [self._document(name, one) for one in self.entries for name in one.names()]
        for start in range(0, len(documents), CREATED_AT_ONCE):
            create_all(self.database.engine, documents[start:][:CREATED_AT_ONCE], author)

    def names_of(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the action's name of each operation."""
        named = operations.join(actions, actions.c.uid == operations.c.action_uid)
        query = sa.select(operations.c.id, actions.c.name).select_from(named)
        with reading(self.database.engine) as connection:
            rows = connection.execute(query.where(operations.c.id.in_([UUID(id) for id in ids])))
            return {str(id): name for id, name in rows}

    def _document(self, name: str, one: Entries) -> dict[str, Any]:
        catch_up = "all" if self.wants_every_missed_run else "latest"
        return {
            "name": name,
            "operations": {"peers_run": {"entry": name}},
            "when": {"cron_rule": one.rule, "timezone": self.zone},
            "policy": {"overlap": "allow", "look_back": "PT1H", "catch_up": catch_up},
        }

    def steps(self) -> Any:
        return Registry((STEPS,)).steps

    def scheduler_command(self) -> Sequence[str]:
        return ["scheduler_server.py"]

    def worker_command(self) -> Sequence[str]:
        return ["-m", "minutebook", "worker", "--queues", "quick", "--concurrency", "1"]

    def environment(self) -> Mapping[str, str]:
        more = {"SCHED_STEP_MODULES": STEPS, "PEER_JOURNAL": str(self.journal)}
        return self.database.environment(**more)

    def close(self) -> None:
        super().close()
        self.database.engine.dispose()


ALL: tuple[type[Contestant], ...] = (
    CeleryBeat,
    DjangoCeleryBeat,
    RedBeat,
    APScheduler,
    Minutebook,
)


def seconds_into_minute() -> float:
    """Return how far the minute has gone."""
    now = utc_now()
    return now.second + now.microsecond / 1e6
