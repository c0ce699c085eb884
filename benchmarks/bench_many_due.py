"""Measure the first and last message of a full minute with very many due actions.

Real daemons, first one, then two; Redis is polled every few milliseconds.
"""

from contextlib import ExitStack
from datetime import UTC, datetime
from threading import Event
from time import perf_counter

from benchmarks.filling import park, release
from benchmarks.harness import Database, Figure, Sizes, Stack, main, process, until

# Due actions must be set before the full minute: this much of the minute must be left.
TIME_TO_RELEASE = 0.3
# Seconds until the last message, by the number of daemons.
AIMS = {1: "5", 2: "3"}
# Constant polling would take a core from the daemons.
LOOK_S = 0.01


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return the seconds from the full minute to the first and last message."""
    database = stack.filled(sizes.actions, sizes.many_due)
    figures = []
    for daemons, aim in AIMS.items():
        first, last = _one_minute(stack, database, daemons, sizes.tick_seconds)
        what = f"{len(database.due):,} due at once, daemons: {daemons}"
        figures += [
            Figure(f"{what}: first message", round(first, 3), "s"),
            Figure(f"{what}: last message", round(last, 3), "s", aim),
        ]
    return figures


def _one_minute(stack: Stack, database: Database, daemons: int, step: int) -> tuple[float, float]:
    stack.flush()
    environment = database.environment(SCHED_SCHEDULER_TICK_SECONDS=str(step))
    with ExitStack() as processes:
        for number in range(daemons):
            log = database.settings.home / f"daemon{number}.log"
            processes.enter_context(process(["scheduler_server.py"], environment, log))
            until(lambda log=log: b" tick " in log.read_bytes(), "the first tick", log)  # type: ignore[misc]
        at = _release_all(database, step)
        times = _watch(stack, database, at, len(database.due))
        until(lambda: _queued(database) == len(database.due), "all to be marked")
    park(database.engine, database.due)
    database.forget_operations()
    stack.flush()
    return times


def _release_all(database: Database, step: int) -> datetime:
    """Make all actions due at the next reachable tick; return it."""
    soon = database.clock().timestamp() + step * TIME_TO_RELEASE
    at = datetime.fromtimestamp((soon // step + 1) * step, UTC)
    release(database.engine, database.due, at)
    if database.clock() >= at:
        raise RuntimeError("this machine is too slow for so many")
    return at


def _watch(stack: Stack, database: Database, at: datetime, due: int) -> tuple[float, float]:
    left = (at - database.clock()).total_seconds()
    zero = perf_counter() + left
    first = 0.0
    pause = Event()
    with stack.broker.client() as client:
        while (waiting := client.llen("minutebook.quick")) < due:
            if waiting and not first:
                first = perf_counter() - zero
            if perf_counter() - zero > 600:
                raise RuntimeError(f"{waiting} of {due} messages after ten minutes")
            pause.wait(LOOK_S)
    return first, perf_counter() - zero


def _queued(database: Database) -> int:
    return database.count("SELECT count(*) FROM operations WHERE state = 'queued'")


if __name__ == "__main__":
    main(measure)
