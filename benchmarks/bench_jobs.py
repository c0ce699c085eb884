"""Measure how long a job waits between the tick that recorded it and the worker that receives it.

Workers of other languages long-poll one real web process; a real daemon ticks every five seconds.
All of them wait when as many jobs become due at one tick. Each worker completes its job and asks
again; a job that was recorded while its worker did not yet ask again does not count. The database's
clock and the workers' clock are those of this machine.
"""

import asyncio
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from benchmarks.harness import Database, Figure, Sizes, Stack, main, middle, percentile, process
from benchmarks.http import Connection, Server, connections, web_process
from minutebook.steps import SmallApp
from models.operation import OperationState
from models.tables import operations, ticks
from runtime.clock import utc_now
from runtime.database import reading
from scheduler.changes.change import create_all
from scheduler.changes.validation import ChangeContext
from tasks.built_in import built_in_steps

TICK = timedelta(seconds=5)
# A round that takes so many times its span has gone wrong.
PATIENCE = 6


@dataclass(frozen=True)
class Received:
    """A job that a worker has, since when it asked, and when it came."""

    job: dict[str, Any]
    asked_at: datetime
    at: datetime


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return the median, p99 and maximum of the hand-over."""
    database = stack.empty()
    _make_jobs(database, sizes)
    daemon = process(
        ["scheduler_server.py"],
        database.environment(SCHED_SCHEDULER_TICK_SECONDS="5"),
        database.settings.home / "daemon.log",
    )
    with web_process(database, SCHED_LOG_LEVEL="WARNING") as server, daemon:
        received = asyncio.run(_all_rounds(server, sizes))
    recorded, offered = _times(database, received)
    tick = _tick_ms(database, sizes.workers)
    stack.drop(database)
    what = f"jobs, {sizes.workers:,} at once for as many workers"
    return [
        Figure(f"{what}: recorded to received, p50", percentile(recorded, 50), "ms"),
        Figure(f"{what}: recorded to received, p99", percentile(recorded, 99), "ms", "200"),
        Figure(f"{what}: recorded to received, worst of {len(recorded):,}", recorded[-1], "ms"),
        Figure(f"{what}: offered to received, p50", percentile(offered, 50), "ms"),
        Figure(f"{what}: offered to received, p99", percentile(offered, 99), "ms"),
        Figure(f"{what}: the tick that records them", tick, "ms"),
    ]


def _make_jobs(database: Database, sizes: Sizes) -> None:
    author = ChangeContext("benchmarks", SmallApp(1, "default", "UTC"), built_in_steps(), TICK)
    # Until the next round, each worker completes its job and asks again.
    when = {"every": f"PT{sizes.job_every_s}S", "starting_at": "2026-01-01T00:00:00Z"}
    documents = [
        {
            "name": f"job {n}",
            "operations": {"job": {"url": f"https://example.com/{n}", "meta": {"depth": 2}}},
            "when": when,
            "policy": {"time_limit": "PT10M"},
        }
        for n in range(sizes.workers)
    ]
    create_all(database.engine, documents, author)


async def _all_rounds(server: Server, sizes: Sizes) -> dict[UUID, Received]:
    async with asyncio.timeout((sizes.job_rounds + 1) * sizes.job_every_s * PATIENCE):
        return await _rounds(server, sizes)


async def _rounds(server: Server, sizes: Sizes) -> dict[UUID, Received]:
    """Return what was received of each operation, without those of the first round."""
    workers = await connections(server, sizes.workers)
    received: dict[UUID, Received] = {}
    for number in range(sizes.job_rounds + 1):
        found = await asyncio.gather(*map(_next_job, workers))
        if number:
            received.update({UUID(one.job["operation_id"]): one for one in found})
        both = zip(workers, found, strict=True)
        await asyncio.gather(*(_complete(worker, one.job) for worker, one in both))
    for worker in workers:
        worker.close()
    return received


async def _next_job(worker: Connection) -> Received:
    asked_at = utc_now()
    while True:
        worker.send("GET", "/jobs/next")
        status, body = await worker.answer()
        at = utc_now()
        if status == 200:
            return Received(json.loads(body), asked_at, at)
        if status != 204:
            raise RuntimeError(f"{status}: {body!r}")


async def _complete(worker: Connection, job: dict[str, Any]) -> None:
    worker.send("POST", f"/jobs/{job['id']}/complete", {"lease": job["lease"]})
    status, body = await worker.answer()
    if status != 204:
        raise RuntimeError(f"{status}: {body!r}")


def _times(database: Database, received: dict[UUID, Received]) -> tuple[list[float], list[float]]:
    """Return the milliseconds since each operation was recorded, and since it could be taken."""
    query = sa.select(operations.c.id, operations.c.recorded_at, operations.c.sent_at)
    done = query.where(operations.c.state == OperationState.SUCCESS)
    with reading(database.engine) as connection:
        rows = [row for row in connection.execute(done) if row.id in received]
    if len(rows) < len(received):
        raise RuntimeError(f"{len(rows)} of {len(received)} succeeded")
    awaited = [row for row in rows if received[row.id].asked_at < row.recorded_at]
    if not awaited:
        raise RuntimeError("no worker asked again before the next job was recorded")
    recorded = sorted(_ms(received[row.id].at, row.recorded_at) for row in awaited)
    offered = sorted(_ms(received[row.id].at, row.sent_at or row.recorded_at) for row in awaited)
    return recorded, offered


def _tick_ms(database: Database, number: int) -> float:
    """Return the median time of the ticks that recorded all jobs, on the same busy machine."""
    with reading(database.engine) as connection:
        rows = connection.execute(sa.select(ticks.c.report, ticks.c.duration_ms)).all()
    return middle([row.duration_ms for row in rows if row.report.get("recorded") == number])


def _ms(later: datetime, earlier: datetime) -> float:
    return round((later - earlier).total_seconds() * 1e3, 1)


if __name__ == "__main__":
    main(measure)
