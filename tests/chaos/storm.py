"""A storm: random actions under a seeded schedule of faults, then a calm, then the judgement."""

import base64
import heapq
import json
import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from random import Random
from threading import Event
from uuid import uuid4

import psutil
import redis
import sqlalchemy as sa

from models.operation import ENDED, OperationState
from models.sql import database_now
from models.tables import operations, ticks
from runtime.clock import monotonic, wait_for
from runtime.database import reading
from tasks.app import configure
from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process
from tests.chaos.checker import violations
from tests.chaos.editing import Editor
from tests.chaos.facts import Facts, from_postgresql, from_sqlite
from tests.chaos.faults import Fault, edits, faults, told
from tests.servers import PostgreSQL

DAEMONS, WORKERS = 2, 2
ACTIONS = 14
QUEUES = ("quick", "heavy")
POLL_S = 0.2
CALM_S = 90.0
# A crash of the server must lose nothing that was committed: only its machine may not crash.
SURVIVES_A_CRASH = ("-c", "fsync=off", "-c", "full_page_writes=off")
GONE = (psutil.Error, ProcessLookupError, AssertionError)


class Storm:
    """One storm over one installation; `run` returns what was violated."""

    def __init__(
        self, installation: Installation, server: PostgreSQL | None, seed: int, seconds: float
    ) -> None:
        self.installation, self.server = installation, server
        self.seed, self.seconds = seed, seconds
        self.log = installation.home / "storm.jsonl"
        self.faults = faults(seed, installation.store, seconds)
        self.edits = edits(seed, seconds)
        self.editor = Editor(installation)
        self._processes: dict[str, Process] = {}
        self._repairs: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._acts: dict[str, Callable[[Fault], None]] = {
            "kill daemon": lambda fault: self._kill(self._one("daemon", fault)),
            "kill both daemons": lambda _: self._kill(*self._all("daemon")),
            "freeze daemon": lambda fault: self._freeze(fault, self._one("daemon", fault).pid),
            "stop daemon": lambda fault: self._one("daemon", fault).send(signal.SIGTERM),
            "kill child": lambda fault: self._child(fault).kill(),
            "kill worker": lambda fault: self._kill(self._one("worker", fault)),
            "freeze worker": lambda fault: self._freeze(fault, self._one("worker", fault).pid),
            "freeze child": self._freeze_child,
            "stop worker": lambda fault: self._one("worker", fault).send(signal.SIGTERM),
            "stop broker": lambda fault: self._stop_broker(fault, signal.SIGTERM),
            "kill broker": lambda fault: self._stop_broker(fault, signal.SIGKILL),
            "empty broker": self._empty_broker,
            "freeze broker": self._freeze_broker,
            "flush broker": lambda _: self._flush(),
            "repeat messages": lambda _: self._repeat(),
            "forge messages": self._forge,
            "lock database": self._lock_database,
            "freeze database": self._freeze_database,
            "restart database": lambda fault: self._stop_database(fault, signal.SIGINT),
            "crash database": lambda fault: self._stop_database(fault, signal.SIGQUIT),
        }

    def run(self) -> list[str]:
        """Storm, calm down, end all processes; return the violations."""
        configure(self.installation.settings)
        if self.server is not None:
            self.server.stop()
            self.server.start(SURVIVES_A_CRASH)
        self.editor.begin(Random(f"actions {self.seed}"), ACTIONS)
        editing = self.editor.follow(self.edits)
        try:
            self._blow()
        finally:
            self.editor.stop()
            while self._repairs:
                heapq.heappop(self._repairs)[2]()
        editing.join(CALM_S)
        if self.editor.error is not None:
            raise self.editor.error
        found = self._calm_down()
        self.installation.processes.kill_all()
        return found + violations(self.facts())

    def facts(self) -> Facts:
        """Return what there is to be judged."""
        if self.server is None:
            return from_sqlite(self.installation.home / "minutehand.db", self.log)
        url = self.installation.settings.database_url.get_secret_value()
        return from_postgresql(url, self.log)

    def story(self) -> str:
        """Return what anybody needs to see the same again."""
        return "\n".join(
            [f"seed {self.seed} on {self.installation.store}, {self.seconds:g} s",
             told(self.faults), "edits:", told(self.edits)]
        )  # fmt: skip

    # The storm and the calm

    def _blow(self) -> None:
        started = monotonic()
        waiting = self.faults.copy()
        while (at_s := monotonic() - started) < self.seconds:
            self._tend()
            self._repair(at_s)
            if waiting and waiting[0].at_s <= at_s:
                fault = waiting.pop(0)
                # Its victim may have ended on its own, or be away.
                with suppress(*GONE, redis.RedisError, sa.exc.SQLAlchemyError, sqlite3.Error):
                    self._acts[fault.kind](fault)
            Event().wait(POLL_S / 4)

    def _repair(self, at_s: float) -> None:
        while self._repairs and self._repairs[0][0] <= at_s:
            heapq.heappop(self._repairs)[2]()

    def _later(self, fault: Fault, repair: Callable[[], None]) -> None:
        due = (fault.at_s + fault.lasts_s, next(self._numbers), repair)
        heapq.heappush(self._repairs, due)

    def _tend(self) -> None:
        """Start what ended, as a service manager does."""
        starts = {"daemon": self.installation.daemon, "worker": self._start_worker}
        for role, number in (("daemon", DAEMONS), ("worker", WORKERS)):
            for name in (f"{role} {n}" for n in range(number)):
                if name not in self._processes or not self._processes[name].is_alive:
                    self._processes[name] = starts[role]()

    def _start_worker(self) -> Process:
        return self.installation.worker("quick,heavy", 2)

    def _calm_down(self) -> list[str]:
        self.editor.end_all()
        ended_at = self.installation.now()
        # What was recorded in the storm may all have to run, one by one.
        timeout_s = CALM_S + self.seconds
        if wait_for(lambda: self._is_calm(ended_at), timeout_s):
            return []
        return [f"no calm within {timeout_s:g} s; the tail of the logs:\n{self._tails()}"]

    def _is_calm(self, since: datetime) -> bool:
        self._tend()
        Event().wait(POLL_S * 5)
        with self.installation.engine.begin() as connection:
            # Minutes of backoff and of waiting for a message that is gone: now.
            waits = sa.and_(
                operations.c.state.in_([OperationState.PENDING, OperationState.QUEUED]),
                operations.c.not_before > database_now(5.0),
                operations.c.recorded_at < database_now(-5.0),
            )
            changed = sa.update(operations).where(waits).values(not_before=database_now(2.0))
            connection.execute(changed)
            open_ = sa.select(sa.func.count()).where(operations.c.state.not_in(ENDED))
            if connection.execute(open_).scalar_one():
                return False
            last = connection.execute(sa.select(sa.func.max(ticks.c.now))).scalar_one()
            return bool(last is not None and (last - since).total_seconds() > 8)

    def _tails(self) -> str:
        started = self.installation.processes.started[-6:]
        return "\n".join(f"--- {one.log.name}\n{one.text()[-1500:]}" for one in started)

    # Processes

    def _all(self, role: str) -> list[Process]:
        return [process for name, process in self._processes.items() if name.startswith(role)]

    def _one(self, role: str, fault: Fault) -> Process:
        found = self._all(role)
        return found[fault.number % len(found)]

    def _child(self, fault: Fault) -> psutil.Process:
        found = sorted(self._one("worker", fault).children())
        if not found:
            raise psutil.NoSuchProcess(0)
        return psutil.Process(found[fault.number // 7 % len(found)])

    def _kill(self, *processes: Process) -> None:
        for process in processes:
            process.kill()

    def _freeze(self, fault: Fault, pid: int) -> None:
        """Stop a process and its children where they are, for a while."""
        process = psutil.Process(pid)
        self._later(fault, lambda: self._thaw(process))
        process.suspend()
        for child in process.children(recursive=True):
            with suppress(psutil.Error):
                child.suspend()

    def _freeze_child(self, fault: Fault) -> None:
        child = self._child(fault)
        self._later(fault, lambda: self._thaw(child))
        child.suspend()

    def _thaw(self, process: psutil.Process) -> None:
        with suppress(*GONE):
            # The parent first: a child that it must reap, or that is gone, holds up nobody.
            process.resume()
            for child in process.children(recursive=True):
                with suppress(psutil.Error):
                    child.resume()

    # Broker

    def _stop_broker(self, fault: Fault, how: signal.Signals) -> None:
        self._later(fault, self.installation.broker.start)
        self.installation.broker.stop(how)

    def _empty_broker(self, fault: Fault) -> None:
        self._stop_broker(fault, signal.SIGKILL)
        shutil.rmtree(self.installation.broker.folder / "appendonlydir", ignore_errors=True)

    def _freeze_broker(self, fault: Fault) -> None:
        self._later(fault, self.installation.thaw_broker)
        self.installation.freeze_broker()

    def _flush(self) -> None:
        with self.installation.broker.client() as client:
            client.flushall()

    def _repeat(self) -> None:
        for queue in QUEUES:
            self.installation.repeat_messages(queue, 2)

    def _forge(self, fault: Fault) -> None:
        """Deliver messages that were sent once again: of any operation, of old attempts, first."""
        random = Random(fault.number)
        with reading(self.installation.engine) as connection:
            rows = connection.execute(
                sa.select(operations.c.id, operations.c.attempt, operations.c.state,
                          operations.c.task, operations.c.queue)
            ).all()  # fmt: skip
        with self.installation.broker.client() as client:
            for row in random.sample(rows, min(20, len(rows))):
                # The attempt of a pending one may not have been sent yet.
                most = row.attempt - 1 if row.state == OperationState.PENDING else row.attempt
                if most >= 1:
                    raw = _message(row.id, random.randint(1, most), row.task)
                    (client.lpush if random.random() < 0.5 else client.rpush)(row.queue, raw)

    # Database

    def _lock_database(self, fault: Fault) -> None:
        path = self.installation.home / "minutehand.db"
        locker = sqlite3.connect(path, timeout=2, isolation_level=None)
        try:
            locker.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            locker.close()
            raise
        self._later(fault, locker.close)

    def _freeze_database(self, fault: Fault) -> None:
        assert self.server is not None
        assert self.server.process is not None
        self._freeze(fault, self.server.process.pid)

    def _stop_database(self, fault: Fault, how: signal.Signals) -> None:
        assert self.server is not None
        server = self.server
        self._later(fault, lambda: server.start(SURVIVES_A_CRASH))
        server.stop(how)


def _message(id: object, attempt: int, task: str) -> str:
    """Return a message as Celery puts it into Redis."""
    body = json.dumps(
        [
            [str(id), attempt],
            {},
            {"callbacks": None, "errbacks": None, "chain": None, "chord": None},
        ]
    )
    headers = {"lang": "py", "task": task, "id": str(id), "root_id": str(id), "retries": 0}
    properties = {
        "correlation_id": str(id),
        "delivery_mode": 2,
        "delivery_info": {"exchange": "", "routing_key": "quick"},
        "priority": 0,
        "body_encoding": "base64",
        "delivery_tag": str(uuid4()),
    }
    return json.dumps(
        {
            "body": base64.b64encode(body.encode()).decode(),
            "content-encoding": "utf-8",
            "content-type": "application/json",
            "headers": headers,
            "properties": properties,
        }
    )


def environment(home: Path) -> dict[str, str]:
    """Return what the processes of a storm are given besides an installation's settings."""
    return {
        "SCHED_STEP_MODULES": "storm_steps",
        "PYTHONPATH": str(Path(__file__).parent),
        "MINUTEHAND_STORM": str(home / "storm.jsonl"),
        "SCHED_WORKER_SOFT_LIMIT_S": "1",
        "SCHED_WORKER_HARD_LIMIT_S": "2",
    }
