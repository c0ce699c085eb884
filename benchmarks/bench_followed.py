"""Measure what a followed Celery task costs: the CPU of worker and server, and tasks per second.

The same application runs the same task without `minutebook.follow`, in the same round. The CPU is
that of all processes of the installation but the database and the broker: the workers, their pools
and `minutebook web`, from the first message to the last end. Two workers run two tasks each.

Long tasks renew their leases: what that costs the server is a share of one core, as if all of them
did so each heartbeat, each by itself or as workers do, with a request for all tasks of a pool.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import UUID

import psutil

from benchmarks import followed_tasks
from benchmarks.filling import record_one_each
from benchmarks.harness import Database, Figure, Sizes, Stack, main, middle, process, until
from benchmarks.http import Connection, Server, web_process
from broker.app import configure
from minutebook.steps import SmallApp
from models.celery_task import CeleryRules
from runtime.sections.celery import CelerySettings
from runtime.sections.processes import WorkerSettings
from scheduler.changes.change import create_all
from scheduler.changes.validation import ChangeContext
from scheduler.sweep import dispatch_ready
from tasks.built_in import built_in_steps

WORKERS = 2
SLOTS = 2
POOL = 8
TASK = followed_tasks.nothing.name
HEARTBEAT_S = WorkerSettings().heartbeat_s
RULES = CeleryRules(("benchmark.*",))


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return the milliseconds of CPU per task, followed and not, and tasks per second."""
    beats = _beats(stack, sizes)
    plain, followed = [], []
    for _ in range(sizes.repeats):
        plain.append(_run(stack, sizes.messages, is_followed=False))
        followed.append(_run(stack, sizes.messages, is_followed=True))
    times = middle([own[0] / other[0] for own, other in zip(followed, plain, strict=True)])
    return [
        Figure("followed: CPU of a plain Celery task", middle([cpu for cpu, _ in plain]), "ms"),
        Figure("followed: CPU of a followed task", middle([cpu for cpu, _ in followed]), "ms"),
        Figure("followed: times the CPU of a plain one", times, "x", "3.5"),
        Figure("followed: plain tasks per second", middle([rate for _, rate in plain]), "/s"),
        Figure("followed: tasks per second", middle([rate for _, rate in followed]), "/s", "200"),
        *beats,
    ]


def _beats(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return what the heartbeats of many attempts cost, each by itself and in pools."""
    database, number = stack.empty(), sizes.beating
    ids = _record(database, number)
    with web_process(database, SCHED_LOG_LEVEL="WARNING") as server:
        alone, together = asyncio.run(_beat(server, ids, sizes.repeats))
    stack.drop(database)
    what = f"followed: web while {number:,} attempts beat each {HEARTBEAT_S:g} s"
    return [
        Figure(f"{what}, each by itself", 100 * alone / HEARTBEAT_S, "% of a core"),
        Figure(f"{what}, in pools of {POOL}", 100 * together / HEARTBEAT_S, "% of a core", "5"),
    ]


async def _beat(server: Server, ids: list[UUID], repeats: int) -> tuple[float, float]:
    """Return the CPU seconds of one round of heartbeats, one by one and in pools."""
    connection = await Connection.open(server)
    taken = {"attempt": 1, "worker": "w@host"}
    leases = {}
    for id in ids:
        path = f"/api/operations/{id}"
        answer = await _ask(connection, f"{path}:take", {**taken, "delivery": id.hex})
        leases[path] = {"lease": answer["lease"]}
    its = psutil.Process(server.pid)
    alone, together = [], []
    for _ in range(repeats):
        before = _cpu_of(its)
        for path, lease in leases.items():
            await _ask(connection, f"{path}:beat", lease)
        between = _cpu_of(its)
        for first in range(0, len(leases), POOL):
            beats = [*leases.values()][first : first + POOL]
            await _ask(connection, "/api/operations:beat", {"beats": beats})
        alone.append(between - before)
        together.append(_cpu_of(its) - between)
    connection.close()
    return middle(alone), middle(together)


async def _ask(connection: Connection, path: str, said: dict[str, Any]) -> dict[str, Any]:
    connection.send("POST", path, said)
    status, body = await connection.answer()
    if status != HTTPStatus.OK:
        raise RuntimeError(f"{path}: {status}: {body!r}")
    answer: dict[str, Any] = json.loads(body)
    return answer


def _cpu_of(its: psutil.Process) -> float:
    times = its.cpu_times()
    return times.user + times.system


def _run(stack: Stack, number: int, *, is_followed: bool) -> tuple[float, float]:
    """Return the milliseconds of CPU per task, and how many were done per second."""
    database = stack.empty()
    ids = _record(database, number) if is_followed else []
    with _workers(stack, database, is_followed=is_followed):
        before, started = _cpu_s(database), perf_counter()
        if is_followed:
            celery = CelerySettings(tasks=("benchmark.*",))
            configure(database.settings.model_copy(update={"celery": celery}))
            dispatch_ready(database.engine)
        else:
            _send(stack, number)
        _wait_for_the_end(stack, database, len(ids))
        cpu_s, wall_s = _cpu_s(database) - before, perf_counter() - started
    stack.drop(database)
    return cpu_s / number * 1e3, number / wall_s


def _send(stack: Stack, number: int) -> None:
    task: Any = followed_tasks.nothing
    with followed_tasks.app.connection_for_write(stack.broker.url) as connection:
        for _ in range(number):
            task.apply_async(connection=connection)


def _record(database: Database, number: int) -> list[UUID]:
    """Record one operation for each of `number` actions, to send at once."""
    author = ChangeContext(
        "benchmarks", SmallApp(1, "default", "UTC"), built_in_steps(), celery=RULES
    )
    documents = [
        {
            "name": f"action {n}",
            "operations": {"celery_task": {"task": TASK, "queue": "followed"}},
            "when": {"cron_rule": "0 0 1 1 *", "timezone": "UTC"},
        }
        for n in range(number)
    ]
    made = create_all(database.engine, documents, author)
    return record_one_each(database.engine, made, database.now)


@contextmanager
def _workers(stack: Stack, database: Database, *, is_followed: bool) -> Iterator[None]:
    environment = database.environment(
        BENCHMARK_BROKER_URL=stack.broker.url,
        BENCHMARK_FOLLOWS="1" if is_followed else "",
        SCHED_LOG_LEVEL="WARNING",
    )
    with ExitStack() as opened:
        if is_followed:
            log = database.settings.home / "web.log"
            served = ["-P", "-m", "minutebook", "web", "--port", "0"]
            opened.enter_context(process(served, environment, log))
            until((database.settings.home / "web.sock").exists, "a server", log)
        for number in range(WORKERS):
            log = database.settings.home / f"worker{number}.log"
            options = ["--concurrency", str(SLOTS), "-n", f"w{number}@%h", "-l", "INFO"]
            quiet = ["--without-gossip", "--without-mingle"]
            app = "benchmarks.followed_tasks"
            command = ["-W", "ignore", "-m", "celery", "-A", app, "worker", *options, *quiet]
            opened.enter_context(process(command, environment, log))
            until(partial(_is_ready, log), "a worker", log)
        yield


def _is_ready(log: Path) -> bool:
    return "ready." in log.read_text()


def _wait_for_the_end(stack: Stack, database: Database, operations: int) -> None:
    ended = "SELECT count(*) FROM operations WHERE state = 'success'"
    with stack.broker.client() as client:

        def is_over() -> bool:
            if client.llen("followed") or client.hlen("unacked"):
                return False
            return operations == 0 or database.count(ended) == operations

        until(is_over, "the tasks")


def _cpu_s(database: Database) -> float:
    """Return the CPU seconds of all processes of an installation that live."""
    home, total = str(database.settings.home), 0.0
    for one in psutil.process_iter():
        try:
            if one.environ().get("SCHED_HOME") == home:
                total += _cpu_of(one)
        except psutil.Error:
            continue
    return total


if __name__ == "__main__":
    main(measure)
