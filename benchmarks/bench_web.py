"""Measure one real web process: reads a second, and 1,000 listeners to server-sent events.

The reads come from `wrk` with 32 connections. Their processor time is that of the web process
alone; wrk and the database share the machine.
"""

import asyncio
import re
import shutil
import subprocess
import sys
from time import perf_counter

import psutil
import sqlalchemy as sa

from benchmarks.filling import Filling, analyze, fill_actions
from benchmarks.harness import Database, Figure, Sizes, Stack, main, percentile, rss_mb
from benchmarks.http import Connection, Server, connections, web_process
from models.fingerprint import operation_id
from models.operation import by_action
from models.store import operations
from models.tables import actions
from models.tables import operations as operations_table
from scheduler.record import ActionRef, operation_row

AT_ONCE = 32
LONGEST_S = 60
RATE = re.compile(r"Requests/sec:\s+([\d.]+)")
LATENCY = re.compile(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s)\s*$", re.MULTILINE)
REFUSED = re.compile(r"Non-2xx or 3xx responses: (\d+)|Socket errors: (.*)")
IN_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return the figures of reads and of listeners."""
    database = stack.empty()
    fill_actions(database.engine, Filling(sizes.paged_actions, database.now))
    id = _record_one(database)
    analyze(database.engine)
    with web_process(database, SCHED_LOG_LEVEL="WARNING") as server:
        found = _reads(server, id, sizes)
        found += asyncio.run(_listening(database, server, id, sizes))
    stack.drop(database)
    return found


def _record_one(database: Database) -> str:
    """Record an operation; return its id."""
    with database.engine.begin() as connection:
        row = connection.execute(sa.select(actions.c.uid, actions.c.name, actions.c.plan)).first()
        if row is None:
            raise RuntimeError("there is no action")
        at = database.now.replace(second=0, microsecond=0)
        ref = ActionRef(row.uid, 1, row.name, 1)
        id = operation_id(row.uid, at)
        operations.record(connection, [operation_row(ref, row.plan, id, at, by_action(row.name))])
    return str(id)


def _reads(server: Server, id: str, sizes: Sizes) -> list[Figure]:
    if shutil.which("wrk") is None:
        print("reads are not measured: wrk is not installed", file=sys.stderr)
        return []
    paths = {
        "/healthz": "",
        f"/api/operations/{id}/state": "1,000",
        f"/api/operations/{id}": "1,000",
        "/api/apps/default/status": "1,000",
        "/api/actions?limit=100": "600",
    }
    return [
        figure
        for path, aim in paths.items()
        for figure in _read(server, path, path.replace(id, "{id}"), aim, sizes.read_s)
    ]


def _read(server: Server, path: str, name: str, aim: str, seconds: int) -> list[Figure]:
    command = ["wrk", "-t1", f"-c{AT_ONCE}", f"-d{seconds}s", "--latency", "--timeout", "30s"]
    url = f"http://127.0.0.1:{server.port}{path}"
    before = _cpu_s(server)
    ran = subprocess.run(
        [*command, "-H", server.authorization, url], capture_output=True, text=True, check=True
    )
    used = _cpu_s(server) - before
    rate = RATE.search(ran.stdout)
    refused = REFUSED.search(ran.stdout)
    late = {found[1]: float(found[2]) * IN_MS[found[3]] for found in LATENCY.finditer(ran.stdout)}
    if rate is None or refused is not None:
        raise RuntimeError(ran.stdout)
    a_second = float(rate[1])
    if not a_second and seconds < LONGEST_S:
        # The machine was too busy to answer at all.
        return _read(server, path, name, aim, seconds * 2)
    if len(late) != 2:
        raise RuntimeError(ran.stdout)
    what = f"reads, {name}"
    return [
        Figure(what, round(a_second), "/s", aim),
        Figure(f"{what}: p50", round(late["50"], 1), "ms"),
        Figure(f"{what}: p99", round(late["99"], 1), "ms"),
        Figure(f"{what}: CPU of one", round(used / (a_second * seconds) * 1e3, 3), "ms"),
    ]


async def _listening(database: Database, server: Server, id: str, sizes: Sizes) -> list[Figure]:
    """Return how long until the last listener has a change, and what listening costs."""
    before = rss_mb(server.pid)
    listeners = await connections(server, sizes.listeners)
    path = f"/api/operations/{id}/events"
    began = perf_counter()
    await asyncio.gather(*(one.events(path) for one in listeners))
    await asyncio.gather(*(one.event() for one in listeners))
    came = perf_counter() - began
    memory = rss_mb(server.pid) - before
    cpu, transactions, began = _cpu_s(server), _transactions(database), perf_counter()
    await asyncio.sleep(sizes.read_s)
    span = perf_counter() - began
    idle = (_cpu_s(server) - cpu) / span
    asked = (_transactions(database) - transactions) / span
    late = [
        await _until_last(database, listeners, f"change {number}")
        for number in range(sizes.live_changes)
    ]
    for one in listeners:
        one.close()
    what = f"live, {sizes.listeners:,} listeners"
    figures = [
        Figure(f"{what}: until all have their first event", round(came, 3), "s"),
        Figure(f"{what}: a change until the last has it, p50", percentile(late, 50), "ms"),
        Figure(f"{what}: a change until the last has it, worst", max(late), "ms"),
        Figure(f"{what}: memory of one", round(memory * 1e3 / sizes.listeners, 1), "kB"),
        Figure(f"{what}: CPU while nothing changes", round(idle * 100, 1), "%"),
    ]
    if database.engine.dialect.name == "postgresql":
        rate = Figure(f"{what}: statements a second in the database", round(asked, 1), "/s")
        figures.append(rate)
    return figures


async def _until_last(database: Database, listeners: list[Connection], message: str) -> float:
    """Return the milliseconds from a change's commit until the last listener has read it."""
    with database.engine.begin() as connection:
        changed = sa.update(operations_table).values(message=message)
        connection.execute(changed)
    began = perf_counter()
    events = await asyncio.gather(*(one.event() for one in listeners))
    took = perf_counter() - began
    if any(event["message"] != message for event in events):
        raise RuntimeError("an event came that is not of the change")
    return round(took * 1e3, 1)


def _cpu_s(server: Server) -> float:
    used = psutil.Process(server.pid).cpu_times()
    return used.user + used.system


def _transactions(database: Database) -> int:
    """Return how many transactions the database has ended; a reading one has one statement."""
    if database.engine.dialect.name != "postgresql":
        return 0
    return database.count(
        "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
    )


if __name__ == "__main__":
    main(measure)
