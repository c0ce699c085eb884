"""One installation under test: a home folder, a database, a broker, and its processes."""

import json
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import sqlalchemy as sa

from broker.app import configure
from minutebook.steps import SmallApp
from models.operation import ENDED
from models.sql import database_now, read_clock
from models.store import operations as operations_store
from models.store.operations.transitions import attempts_of
from models.store.scope import WHOLE_INSTALLATION
from models.tables import operations, ticks
from runtime.config import Settings
from runtime.database import make_engine, reading
from scheduler.changes import Change
from scheduler.changes.change import create_all
from scheduler.sweep import dispatch_ready
from tasks.registry import Registry
from tests.acceptance import steps_for_tests
from tests.acceptance.processes import ROOT, Process, Processes, python, until
from tests.acceptance.trace import Trace
from tests.factories import (
    DEFAULT_APP,
    author,
    make_document,
    make_operation,
    set_back,
    update_operation,
    yearly,
)
from tests.servers import Broker
from tests.ticks import MINUTE

HEARTBEAT_S = 0.5
LEASE_S = 1.5
TICK_S = 5
# A lease, the sweep's own caution after it, and the next tick.
TAKEN_BACK_S = 90.0


@dataclass
class Installation:
    """What a test works with; everything it starts ends with it."""

    store: str
    settings: Settings
    broker: Broker
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home = self.settings.home
        self.trace = Trace(self.home / "trace.jsonl")
        database = self.settings.database_url.get_secret_value()
        broker = self.settings.broker_url.get_secret_value()
        ours = {
            "SCHED_HOME": str(self.home),
            **({"SCHED_BROKER_URL": broker} if broker else {}),
            **({"SCHED_DATABASE_URL": database} if database else {}),
            "SCHED_STEP_MODULES": "steps_for_tests",
            "SCHED_SCHEDULER_TICK_SECONDS": str(TICK_S),
            "SCHED_WORKER_HEARTBEAT_S": str(HEARTBEAT_S),
            "SCHED_WORKER_LEASE_S": str(LEASE_S),
            "SCHED_WORKER_STOP_GRACE_S": "1",
            "SCHED_WORKER_CANCEL_GRACE_S": "1",
            "SCHED_WEB_PORT": "0",
            "PYTHONPATH": str(Path(__file__).parent),
            "MINUTEBOOK_TRACE": str(self.trace.path),
        }
        logs = self.home / "logs"
        logs.mkdir()
        self.processes = Processes(logs, {**ours, **self.environment})

    @cached_property
    def engine(self) -> sa.Engine:
        return make_engine(self.settings)

    def close(self) -> None:
        self.processes.kill_all()
        self.engine.dispose()

    # Processes

    def daemon(self, settings: Mapping[str, str] | None = None) -> Process:
        """Start the daemon; it ticks at once, then every five seconds."""
        command = python(str(ROOT / "scheduler_server.py"))
        return self.processes.start("daemon", command, settings)

    def tick(self, *arguments: str) -> str:
        """Make one tick by a daemon of its own; return what it wrote."""
        done = self.processes.run(python(str(ROOT / "scheduler_server.py"), "--once", *arguments))
        assert done.returncode == 0, done.stderr
        return done.stderr

    def send(self) -> None:
        """Send what may be sent, as a tick does, where the fact is about workers."""
        configure(self.settings)
        dispatch_ready(self.engine)

    def worker(
        self,
        queues: str = "quick",
        concurrency: int = 1,
        *,
        is_awaited: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a worker; with `is_awaited` it is ready on return."""
        arguments = ("worker", "--queues", queues, "--concurrency", str(concurrency))
        process = self.processes.start("worker", self.command(*arguments), settings)
        if is_awaited:
            process.said("is ready for")
        return process

    def command(self, *arguments: str) -> list[str]:
        return python("-P", "-m", "minutebook", *arguments)

    def cli(self, *arguments: str) -> Any:
        """Run a `minutebook` command that prints JSON; return it."""
        done = self.processes.run(self.command("--json", *arguments))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    # Actions and operations

    def now(self) -> datetime:
        with reading(self.engine) as connection:
            return read_clock(connection)

    def action(self, name: str = "traced", app: SmallApp = DEFAULT_APP, **changes: Any) -> Change:
        """Store an action of one traced step whose occurrences the test records itself."""
        changes = {"operations": {"trace_one": True}, "when": yearly(self.now(), -40), **changes}
        return self._store(make_document(name=name, **changes), app=app)[0]

    def due_action(self, name: str = "due", **changes: Any) -> Change:
        """Store an action with one occurrence, at the last full minute; the next is in a year."""
        now = self.now()
        when = yearly(now.replace(second=0, microsecond=0))
        action = self.action(name, when=when, **changes)
        set_back(self.engine, action.uid, now - 2 * MINUTE)
        return action

    def due_at_ticks(self, count: int, ticks: int, in_s: int) -> list[Change]:
        """Store actions that are due at so many ticks, the first in `in_s` seconds or later."""
        soon = self.now() + timedelta(seconds=in_s + TICK_S)
        first = soon.replace(second=soon.second // TICK_S * TICK_S, microsecond=0)
        ends = first + ticks * timedelta(seconds=TICK_S)
        when = {"every": f"PT{TICK_S}S", "starting_at": first.isoformat()}
        policy = {"overlap": "allow", "catch_up": "all", "look_back": "PT5M"}
        policy["ends_at"] = ends.isoformat()
        steps = {"trace_one": True}
        stored = self._store(
            *(
                make_document(name=f"action {n}", when=when, operations=steps, policy=policy)
                for n in range(count)
            )
        )
        # It may take longer than until the first tick.
        set_back(self.engine, [one.uid for one in stored], first - timedelta(seconds=1))
        return stored

    def operation(self, action: Change, minutes_ago: int = 0) -> UUID:
        """Record an operation of an action; the next tick, or `send`, sends it."""
        occurrence = self.now().replace(second=0, microsecond=0) - minutes_ago * MINUTE
        id = make_operation(self.engine, action, occurrence)
        self.make_sendable(id)
        return id

    def make_sendable(self, *ids: UUID) -> None:
        """Age `not_before` by hand: the next tick sends these, as if minutes had gone by."""
        for id in ids:
            update_operation(self.engine, id, not_before=database_now(-1.0))

    def _store(self, *documents: dict[str, Any], app: SmallApp = DEFAULT_APP) -> list[Change]:
        specs = Registry((steps_for_tests.__name__,)).steps
        by = replace(author(specs, app), tick=timedelta(seconds=TICK_S))
        return create_all(self.engine, documents, by)

    def row(self, id: UUID) -> dict[str, Any]:
        with reading(self.engine) as connection:
            return operations_store.get(connection, id, WHOLE_INSTALLATION)

    def rows(self, *uids: UUID) -> list[sa.RowMapping]:
        """Return all operations, or those of some actions, oldest occurrence first."""
        query = sa.select(operations).order_by(operations.c.occurrence_at, operations.c.id)
        if uids:
            query = query.where(operations.c.action_uid.in_(uids))
        with reading(self.engine) as connection:
            return list(connection.execute(query).mappings())

    def count_of(self, state: str) -> int:
        count = sa.select(sa.func.count()).where(operations.c.state == state)
        with reading(self.engine) as connection:
            return int(connection.execute(count).scalar_one())

    def attempts(self, id: UUID) -> list[tuple[int, str, str | None]]:
        with reading(self.engine) as connection:
            found = attempts_of(connection, id)
        return [(one["attempt"], one["state"], one["error"]) for one in found]

    def ticks(self) -> list[sa.RowMapping]:
        with reading(self.engine) as connection:
            return list(connection.execute(sa.select(ticks).order_by(ticks.c.id)).mappings())

    # Waiting

    def becomes(self, id: UUID, state: str, timeout_s: float = TAKEN_BACK_S) -> dict[str, Any]:
        """Wait until an operation is in that state; return its row."""
        return self.awaits(id, lambda row: row["state"] == state, timeout_s)

    def awaits(
        self, id: UUID, holds: Callable[[dict[str, Any]], bool], timeout_s: float = TAKEN_BACK_S
    ) -> dict[str, Any]:
        """Wait until something holds of an operation's row; return the row."""
        until(lambda: holds(self.row(id)), lambda: self._told(id), timeout_s)
        return self.row(id)

    def awaited_rows(
        self, action: Change, count: int, timeout_s: float = TAKEN_BACK_S
    ) -> list[sa.RowMapping]:
        """Wait until an action has so many operations; return them."""
        until(
            lambda: len(self.rows(action.uid)) == count, f"{count} operations recorded", timeout_s
        )
        return self.rows(action.uid)

    def all_end(self, ids: list[UUID], timeout_s: float = TAKEN_BACK_S) -> list[str]:
        """Wait until these operations have ended; return their states."""
        ended = sa.select(sa.func.count()).where(
            operations.c.id.in_(ids), operations.c.state.in_(ENDED)
        )

        def are_over() -> bool:
            with reading(self.engine) as connection:
                return connection.execute(ended).scalar_one() == len(ids)

        until(are_over, lambda: "\n".join(["not all end:", *map(self._told, ids)]), timeout_s)
        return [self.row(id)["state"] for id in ids]

    def step_starts(self, id: UUID, times: int = 1, timeout_s: float = TAKEN_BACK_S) -> int:
        """Wait for so many starts of an operation's steps; return the pid of the last of them."""
        until(
            lambda: len(self.trace.starts(id)) >= times,
            lambda: f"{times} starts of steps: {self._told(id)}",
            timeout_s,
        )
        return self.trace.starts(id)[times - 1].pid

    def file(self, name: str) -> Path:
        """Return a path that a step can wait for."""
        return self.home / name

    # Messages

    def freeze_broker(self) -> None:
        """Stop the broker where it is: it accepts connections and never answers."""
        self.broker.send_signal(signal.SIGSTOP)

    def thaw_broker(self) -> None:
        self.broker.send_signal(signal.SIGCONT)

    def repeat_messages(
        self, queue: str = "minutebook.quick", times: int = 1, most: int | None = None
    ) -> int:
        """Put each waiting message, or the `most` newest, into its queue `times` times more.

        Return how many wait then.
        """
        with self.broker.client() as client:
            for raw in client.lrange(queue, 0, -1 if most is None else most - 1):
                for _ in range(times):
                    client.lpush(queue, _again(raw))
            return int(client.llen(queue))

    def put_messages(self, raws: list[bytes], queue: str = "minutebook.quick") -> None:
        """Put messages that were kept into the queue, as if late."""
        with self.broker.client() as client:
            for raw in raws:
                client.lpush(queue, _again(raw))

    def kept_messages(self, queue: str = "minutebook.quick") -> list[bytes]:
        with self.broker.client() as client:
            return list(client.lrange(queue, 0, -1))

    def _told(self, id: UUID) -> str:
        row = self.row(id)
        logs = [f"--- {one.name}\n{one.text()[-1500:]}" for one in self.processes.started]
        return "\n".join([str(row), str(self.trace.story(id)), *logs])


def _again(raw: bytes) -> str:
    message: dict[str, Any] = json.loads(raw)
    message["properties"]["delivery_tag"] = str(uuid4())
    return json.dumps(message)
