"""Measure each scheduler alone: start, memory, the time to send what is due at once, idle CPU."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

import psutil

from benchmarks.harness import rss_mb
from benchmarks.peers.contestants import ALL, Contestant, Entries, seconds_into_minute
from runtime.clock import utc_now, wait_for
from tests.servers import PostgreSQL

MINUTE = timedelta(minutes=1)
# So much of a minute must be left to fill and to start, that no minute passes in between.
LATEST_START_S = 30.0
Cell = dict[str, Any]
Make = Callable[[type[Contestant], str], Contestant]


@dataclass(frozen=True)
class Sizes:
    """What is measured, and how long at most."""

    due: tuple[int, ...] = (1_000, 10_000)
    idle: tuple[int, ...] = (10_000, 100_000)
    idle_s: float = 30.0
    # A slower one is reported by what it sent until then.
    most_s: float = 60.0
    start_s: float = 150.0
    entries: int = 1_000
    copies: int = 100


FULL = Sizes()
SMALL = Sizes((20,), (50,), 3.0, 20.0, 60.0, 20, 5)


def wait_until(at: datetime) -> None:
    """Wait for an instant of this machine's clock."""
    wait_for(lambda: utc_now() >= at, 600, poll_s=0.002)


def next_minute(at_least_s: float = 0.0) -> datetime:
    """Return the next full minute that is so far away."""
    soon = utc_now() + timedelta(seconds=at_least_s)
    return soon.replace(second=0, microsecond=0) + MINUTE


def measure_due(folder: Path, server: PostgreSQL, sizes: Sizes) -> dict[str, list[Cell]]:
    """Return start, memory and sending time of each, one after the other."""
    return {
        kind.title: [_due(kind, folder, server, count, sizes) for count in sizes.due]
        for kind in ALL
    }


def _due(
    kind: type[Contestant], folder: Path, server: PostgreSQL, count: int, sizes: Sizes
) -> Cell:
    if seconds_into_minute() > LATEST_START_S:
        wait_until(next_minute())
    entries = [Entries("each minute", "* * * * *", count)]
    one = kind(folder / f"{kind.__name__}-due-{count}", server, entries)
    try:
        one.fill()
        start_s = one.until_first_tick(sizes.start_s)
        if start_s is None:
            return {"count": count, "start_s": None}
        return {"count": count, "start_s": start_s, **_sent(one, count, sizes.most_s)}
    finally:
        one.close()


def _sent(one: Contestant, count: int, most_s: float) -> Cell:
    """Return how long the next minute's messages take, and the memory afterwards."""
    at = next_minute(1.0)
    wait_until(at - timedelta(seconds=0.5))
    before = one.waiting()
    wait_until(at)
    began = perf_counter()
    with one.broker.client() as client:
        wait_for(lambda: client.llen(one.queue) >= before + count, most_s, poll_s=0.005)
        took_s, sent = perf_counter() - began, int(client.llen(one.queue)) - before
    process = one.schedulers[-1]
    return {"took_s": took_s, "sent": min(sent, count), "rss_mb": rss_mb(process.pid)}


def measure_idle(folder: Path, server: PostgreSQL, sizes: Sizes) -> dict[str, list[Cell]]:
    """Return start, memory and idle CPU of each; all stand idle in the same minute."""
    found: dict[str, list[Cell]] = {kind.title: [] for kind in ALL}
    for count in sizes.idle:
        far = (utc_now() + timedelta(minutes=30)).minute
        entries = [Entries("each hour", f"{far} * * * *", count)]
        made: list[Contestant] = []
        try:
            for kind in ALL:
                made.append(kind(folder / f"{kind.__name__}-idle-{count}", server, entries))
                made[-1].fill()
            starts = [one.until_first_tick(sizes.start_s) for one in made]
            with ThreadPoolExecutor(len(made)) as threads:
                cells = list(threads.map(lambda one: _idle(one, sizes.idle_s), made))
            for one, start_s, cell in zip(made, starts, cells, strict=True):
                found[one.title].append({"count": count, "start_s": start_s, **cell})
        finally:
            for one in made:
                one.close()
    return found


def _idle(one: Contestant, seconds: float) -> Cell:
    process = psutil.Process(one.schedulers[-1].pid)
    before = _cpu_s(process)
    wait_until(utc_now() + timedelta(seconds=seconds))
    used = _cpu_s(process) - before
    return {"cpu_percent": 100 * used / seconds, "rss_mb": rss_mb(process.pid)}


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
