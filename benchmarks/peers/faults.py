"""Break something at a minute at which each scheduler has much to send; count what arrives.

All schedulers stand the same fault at the same minute, each with a broker of its own. Workers
start when the fault is over; a scheduler that ended by itself is started again.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.peers.contestants import ALL, Contestant, Entries
from benchmarks.peers.judge import judge
from benchmarks.peers.speed import Cell, Sizes, next_minute, wait_until
from runtime.clock import monotonic, utc_now, wait_for
from tests.servers import PostgreSQL

# To make the servers, fill and start, with all of them at it.
PREPARE_S = 45.0
QUIET_S = 10.0
LONGEST_DRAIN_S = 150.0
Fault = Callable[[Contestant, datetime, int], Any]


def after(at: datetime, seconds: float) -> datetime:
    """Return the instant so many seconds after another."""
    return at + timedelta(seconds=seconds)


def settle(one: Contestant, until: datetime) -> None:
    """Wait, and start again what ends by itself."""

    def is_over() -> bool:
        one.revive()
        return utc_now() >= until

    wait_for(is_over, 600, poll_s=1.0)


def killed_in_mid_send(one: Contestant, at: datetime, count: int) -> Any:
    """Kill the scheduler once a fifth has been sent, and start it again at once."""
    wait_until(at)
    wait_for(lambda: one.waiting() >= count // 5, 60, poll_s=0.001)
    one.kill()
    sent = one.waiting()
    one.start()
    settle(one, after(at, 110))
    return {"sent_at_the_kill": sent}


def broker_away(one: Contestant, at: datetime, _count: int) -> Any:
    """Stop the broker five seconds before the minute; start it half a minute after."""
    wait_until(after(at, -5))
    one.broker.stop()
    settle(one, after(at, 30))
    one.broker.start()
    settle(one, after(at, 110))


def broker_emptied(one: Contestant, at: datetime, count: int) -> Any:
    """Send FLUSHALL once all has been sent, before a worker has taken any of it."""
    wait_until(at)
    wait_for(lambda: one.waiting() >= count, 50, poll_s=0.1)
    sent = one.waiting()
    with one.broker.client() as client:
        client.flushall()
    settle(one, after(at, 110))
    return {"sent_before": sent}


def two_instances(one: Contestant, at: datetime, _count: int) -> Any:
    """Let a second scheduler run beside the first."""
    one.start()
    settle(one, after(at, 80))


ROUNDS: tuple[dict[str, Fault], ...] = (
    {"killed": killed_in_mid_send},
    {"away": broker_away},
    {"emptied": broker_emptied, "two": two_instances},
)


def measure_faults(folder: Path, server: PostgreSQL, sizes: Sizes) -> dict[str, dict[str, Cell]]:
    """Return what each lost and doubled under each fault."""
    found: dict[str, dict[str, Cell]] = {kind.title: {} for kind in ALL}
    for faults in ROUNDS:
        at = next_minute(PREPARE_S)
        plays = [
            (kind, name, fault)
            for name, fault in faults.items()
            for kind in ALL
            if name != "two" or kind.runs_twice
        ]
        with ThreadPoolExecutor(len(plays)) as threads:
            running = [
                threads.submit(
                    _play, kind, folder / f"{kind.__name__}-{name}", server, fault, at, sizes
                )
                for kind, name, fault in plays
            ]
        for (kind, name, _), one in zip(plays, running, strict=True):
            found[kind.title][name] = one.result()
    return found


def _play(
    kind: type[Contestant],
    folder: Path,
    server: PostgreSQL,
    fault: Fault,
    at: datetime,
    sizes: Sizes,
) -> Cell:
    rule = f"{at.minute} {at.hour} * * *"
    one = kind(folder, server, [Entries("once", rule, sizes.entries)])
    try:
        one.fill()
        if one.until_first_tick(PREPARE_S) is None or utc_now() > after(at, -6):
            return {"error": "not ready in time"}
        details = fault(one, at, sizes.entries) or {}
        drain(one)
        due = {name: [at] for entries in one.entries for name in entries.names()}
        verdict = judge(due, one.arrived())
        return {"due": verdict.due, "lost": verdict.lost, "doubled": verdict.doubled, **details}
    finally:
        one.close()


def drain(one: Contestant) -> None:
    """Let a worker take all messages, until nothing has arrived for a while."""
    one.work()
    seen = {"size": -1, "at": monotonic()}

    def is_quiet() -> bool:
        size = one.journal.stat().st_size
        if size != seen["size"] or one.waiting():
            seen.update(size=size, at=monotonic())
        return monotonic() - seen["at"] > QUIET_S

    wait_for(is_quiet, LONGEST_DRAIN_S, poll_s=0.5)
