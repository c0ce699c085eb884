"""One installation under test: a home folder, a database, a broker, and its processes."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import sqlalchemy as sa
from pydantic import SecretStr

from broker.app import configure
from minutebook.steps import SmallApp
from models.operation import ENDED
from models.sql import database_now
from models.store.operations.transitions import attempts_of
from models.store.schema import migrate
from models.tables import operations, ticks
from runtime.config import Settings, load_settings
from runtime.database import make_engine, reading
from scheduler.changes import Change
from scheduler.changes.change import create_all
from scheduler.sweep import dispatch_ready
from tasks.registry import Registry
from tests.acceptance import steps_for_tests
from tests.acceptance.processes import ROOT, SOON_S, Process, Processes, python, until
from tests.acceptance.steps_for_tests import Trace
from tests.factories import (
    DEFAULT_APP,
    author,
    make_document,
    make_operation,
    row_of,
    set_back,
    update_operation,
    yearly,
)
from tests.servers import Broker
from tests.ticks import MINUTE
from tests.transactions import clock_of, fetched

HEARTBEAT_S = 0.5
LEASE_S = 1.5
TICK_S = 5
ADDRESS = re.compile(r"the API is at (http://127\.0\.0\.1:\d+)/api")


@dataclass
class Installation:
    """What a test works with; everything it starts ends with it."""

    settings: Settings
    broker: Broker
    environment: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home = self.settings.home
        # What holds the steps of `held` until this file is there.
        self.go = self.home / "go"
        self.trace = Trace(self.home / "trace.jsonl")
        database = self.settings.database_url.get_secret_value()
        broker = self.settings.broker_url.get_secret_value()
        self.store = "postgresql" if database else "sqlite"
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

    def tick(self, *arguments: str, settings: Mapping[str, str] | None = None) -> str:
        """Make one tick by a daemon of its own; return what it wrote."""
        command = python(str(ROOT / "scheduler_server.py"), "--once", *arguments)
        done = self.processes.run(command, settings)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def tick_at(self, instant: datetime) -> str:
        return self.tick("--at", instant.isoformat())

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

    def web(self, settings: Mapping[str, str] | None = None) -> tuple[Process, str]:
        """Start `minutebook web`; return it and its address when it serves."""
        web = self.processes.start("web", self.command("web"), settings)
        web.said("the API is at")
        found = ADDRESS.search(web.text())
        assert found is not None
        return web, found[1]

    def token(self, role: str, *arguments: str) -> str:
        return str(self.cli("token", "create", "--role", role, *arguments)["token"])

    def client(self, address: str, role: str = "operator") -> httpx.Client:
        """Return a client of an address, with a token of its own."""
        headers = {"Authorization": f"Bearer {self.token(role)}"}
        return httpx.Client(base_url=address, headers=headers, timeout=60)

    def command(self, *arguments: str) -> list[str]:
        return python("-P", "-m", "minutebook", *arguments)

    def cli(self, *arguments: str) -> Any:
        """Run a `minutebook` command that prints JSON; return it."""
        done = self.processes.run(self.command("--json", *arguments))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    # Actions and operations

    def now(self) -> datetime:
        return clock_of(self.engine)

    def action(self, name: str = "traced", app: SmallApp = DEFAULT_APP, **changes: Any) -> Change:
        """Store an action of one traced step whose occurrences the test records itself."""
        changes = {"operations": {"trace_one": True}, "when": yearly(self.now(), -40), **changes}
        specs = Registry((steps_for_tests.__name__,)).steps
        by = replace(author(specs, app), tick=timedelta(seconds=TICK_S))
        return create_all(self.engine, [make_document(name=name, **changes)], by)[0]

    def held(
        self,
        *steps: str,
        name: str = "traced",
        policy: Mapping[str, Any] | None = None,
        **parameters: Any,
    ) -> UUID:
        """Record an operation of these steps, of which the last blocks until `go` is there."""
        *before, last = steps or ("trace_one",)
        blocked = {"until": str(self.go), **parameters}
        operations = {**dict.fromkeys(before, True), last: blocked}
        return self.operation(self.action(name, operations=operations, policy=policy or {}))

    def due_action(self, name: str = "due", **changes: Any) -> Change:
        """Store an action with one occurrence, at the last full minute; the next is in a year."""
        now = self.now()
        when = yearly(now.replace(second=0, microsecond=0))
        action = self.action(name, when=when, **changes)
        set_back(self.engine, action.uid, now - 2 * MINUTE)
        return action

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

    def row(self, id: UUID) -> dict[str, Any]:
        return row_of(self.engine, id)

    def rows(self, *uids: UUID) -> list[sa.RowMapping]:
        """Return all operations, or those of some actions, oldest occurrence first."""
        query = sa.select(operations).order_by(operations.c.occurrence_at, operations.c.id)
        if uids:
            query = query.where(operations.c.action_uid.in_(uids))
        return list(fetched(self.engine, query).mappings())

    def count_of(self, *states: str) -> int:
        count = sa.select(sa.func.count()).where(operations.c.state.in_(states))
        return int(fetched(self.engine, count).scalar_one())

    def attempts(self, id: UUID) -> list[tuple[int, str, str | None]]:
        with reading(self.engine) as connection:
            found = attempts_of(connection, id)
        return [(one["attempt"], one["state"], one["error"]) for one in found]

    def ticks(self) -> list[sa.RowMapping]:
        return list(fetched(self.engine, sa.select(ticks).order_by(ticks.c.id)).mappings())

    # Waiting

    def becomes(self, id: UUID, state: str, timeout_s: float = SOON_S) -> dict[str, Any]:
        """Wait until an operation is in that state; return its row."""
        return self.awaits(id, lambda row: row["state"] == state, timeout_s)

    def awaits(
        self, id: UUID, holds: Callable[[dict[str, Any]], bool], timeout_s: float = SOON_S
    ) -> dict[str, Any]:
        """Wait until something holds of an operation's row; return the row."""
        until(lambda: holds(self.row(id)), lambda: self._told(id), timeout_s)
        return self.row(id)

    def awaited_row(self, action: Change) -> sa.RowMapping:
        """Wait until an action has one operation; return it."""
        until(lambda: len(self.rows(action.uid)) == 1, "an operation is recorded")
        return self.rows(action.uid)[0]

    def all_end(self, ids: list[UUID]) -> list[str]:
        """Wait until these operations have ended; return their states."""
        ended = sa.select(sa.func.count()).where(
            operations.c.id.in_(ids), operations.c.state.in_(ENDED)
        )
        until(
            lambda: fetched(self.engine, ended).scalar_one() == len(ids),
            lambda: "\n".join(["not all end:", *map(self._told, ids)]),
        )
        return [self.row(id)["state"] for id in ids]

    def step_starts(self, id: UUID, times: int = 1) -> int:
        """Wait for so many starts of an operation's steps; return the pid of the last of them."""
        until(
            lambda: len(self.trace.starts(id)) >= times,
            lambda: f"{times} starts of steps: {self._told(id)}",
        )
        return self.trace.starts(id)[times - 1].pid

    # Messages

    def put_messages(self, raws: list[bytes], queue: str = "minutebook.quick") -> None:
        """Put messages that were kept into the queue, as if late."""
        with self.broker.client() as client:
            for raw in raws:
                message = json.loads(raw)
                message["properties"]["delivery_tag"] = str(uuid4())
                client.lpush(queue, json.dumps(message))

    def kept_messages(self, queue: str = "minutebook.quick") -> list[bytes]:
        with self.broker.client() as client:
            return list(client.lrange(queue, 0, -1))

    def _told(self, id: UUID) -> str:
        row = self.row(id)
        logs = [f"--- {one.name}\n{one.text()[-1500:]}" for one in self.processes.started]
        return "\n".join([str(row), str(self.trace.story(id)), *logs])


@contextmanager
def installed(
    settings: Settings, broker: Broker, url: str | None = None, **environment: str
) -> Iterator[Installation]:
    """Yield an installation on a broker, under its own URL or another one."""
    broker_url = SecretStr(broker.url if url is None else url)
    its = settings.model_copy(update={"broker_url": broker_url})
    made = Installation(its, broker, environment)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def installed_at(url: str, folder: Path, broker: Broker) -> Iterator[Installation]:
    """Yield an installation in a new database of PostgreSQL."""
    settings = load_settings(folder, {"SCHED_DATABASE_URL": url})
    engine = make_engine(settings)
    migrate(engine)
    engine.dispose()
    with installed(settings, broker) as made:
        yield made
