"""Measure the processor time of short commands, and of a worker until it is ready."""

import resource
import subprocess
import sys
from collections.abc import Sequence

import psutil

from benchmarks.filling import Filling, fill_actions
from benchmarks.harness import ROOT, Database, Figure, Sizes, Stack, main, middle, process, until

COMMANDS = (("status",), ("action", "list"), ("run", "list"))
AIM, WORKERS_AIM = "1.4", "0.6"
# What every command loads.
LIBRARIES = ("-c", "import sqlalchemy, pydantic")
ACTIONS = 20
# The first run of a command compiles and reads what the next ones find in the cache.
TIMES = 5


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return each command's processor time over that of its libraries, and a worker's start."""
    database = stack.empty()
    fill_actions(database.engine, Filling(ACTIONS, database.now))
    times = TIMES * sizes.repeats
    libraries_s = _middle_of(database, LIBRARIES, times)
    figures = [Figure("`import sqlalchemy, pydantic`: CPU", libraries_s, "s")]
    for words in COMMANDS:
        took_s = _middle_of(database, ("-m", "minutebook", *words), times)
        what = f"`{' '.join(words)}`: CPU"
        figures.append(Figure(what, took_s, "s"))
        figures.append(Figure(f"{what}, over that import", took_s / libraries_s, "x", AIM))
    ready = [_ready(database) for _ in range(sizes.repeats)]
    figures.append(Figure("a worker until it is ready: CPU", middle(ready), "s", WORKERS_AIM))
    stack.drop(database)
    return figures


def _middle_of(database: Database, words: Sequence[str], times: int) -> float:
    _cpu_s(database, words)
    return middle([_cpu_s(database, words) for _ in range(times)])


def _cpu_s(database: Database, words: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *words],
        env=database.environment(),
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _ready(database: Database) -> float:
    """Return the processor time of a worker and its processes when it says that it is ready."""
    log = database.settings.home / "worker.log"
    command = ["-m", "minutebook", "worker", "--queues", "quick", "--concurrency", "1"]
    with process(command, database.environment(), log) as worker:
        until(lambda: b"is ready for" in log.read_bytes(), "the worker to be ready", log)
        started = psutil.Process(worker.pid)
        times = [one.cpu_times() for one in (started, *started.children(recursive=True))]
    return sum(one.user + one.system for one in times)


if __name__ == "__main__":
    main(measure)
