"""Measure one real web process: reads a second.

The reads come from `wrk` with 32 connections. Their processor time is that of the web process
alone; wrk and the database share the machine.
"""

import re
import shutil
import subprocess
import sys

import psutil
import sqlalchemy as sa

from benchmarks.filling import Filling, analyze, fill_actions
from benchmarks.harness import Database, Figure, Sizes, Stack, main
from benchmarks.http import Server, web_process
from models.fingerprint import operation_id
from models.operation import by_action
from models.store.operations.record import record_new
from models.tables import actions
from scheduler.record import ActionRef, operation_row

AT_ONCE = 32
LONGEST_S = 60
RATE = re.compile(r"Requests/sec:\s+([\d.]+)")
LATENCY = re.compile(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s)\s*$", re.MULTILINE)
REFUSED = re.compile(r"Non-2xx or 3xx responses: (\d+)|Socket errors: (.*)")
IN_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return the figures of reads."""
    database = stack.empty()
    fill_actions(database.engine, Filling(sizes.paged_actions, database.now))
    id = _record_one(database)
    analyze(database.engine)
    with web_process(database, SCHED_LOG_LEVEL="WARNING") as server:
        found = _reads(server, id, sizes)
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
        record_new(connection, [operation_row(ref, row.plan, id, at, by_action(row.name))])
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


def _cpu_s(server: Server) -> float:
    used = psutil.Process(server.pid).cpu_times()
    return used.user + used.system


if __name__ == "__main__":
    main(measure)
